module github.com/quantmf/quantmf

go 1.25
