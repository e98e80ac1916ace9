module github.com/quantmf/quantmf/paper

go 1.25

require gonum.org/v1/gonum v0.16.0

replace github.com/quantmf/quantmf => ../
