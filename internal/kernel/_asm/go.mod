module github.com/quantmf/quantmf/internal/kernel/_asm

go 1.25
