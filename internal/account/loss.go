package account

// This file holds losses as flags of the command name them, and in words.

import (
	"errors"
	"strconv"

	"github.com/quantmf/quantmf"
)

// losses are the divergences that have a name.
var losses = map[string]quantmf.Loss{"kl": quantmf.KL, "frobenius": quantmf.Frobenius}

// ParseLoss returns the loss that a flag names.
func ParseLoss(s string) (quantmf.Loss, error) {
	if l, named := losses[s]; named {
		return l, nil
	}
	beta, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errors.New("must be auto, kl, frobenius or the β of a divergence")
	}
	return quantmf.Beta(beta), nil
}

// LossName says in words what a loss is the mean of.
func LossName(l quantmf.Loss) string {
	switch l {
	case quantmf.KL:
		return "Kullback-Leibler divergence"
	case quantmf.Frobenius:
		return "half squared difference"
	case 0:
		return "Itakura-Saito divergence"
	}
	return "β-divergence of β = " + strconv.FormatFloat(float64(l), 'g', -1, 64)
}
