module github.com/quantmf/quantmf

go 1.25

toolchain go1.26.8
