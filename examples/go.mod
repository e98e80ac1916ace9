module github.com/quantmf/quantmf/examples

go 1.25

require github.com/quantmf/quantmf v0.0.0

require gonum.org/v1/gonum v0.17.0

replace github.com/quantmf/quantmf => ../
