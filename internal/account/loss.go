package account

// This file holds losses as flags of the command name them, and in words.

import (
	"errors"
	"strconv"

	"github.com/quantmf/quantmf"
)

// ParseLoss returns the loss that a flag names; auto names none.
func ParseLoss(s string) (l quantmf.Loss, err error) {
	if s == "auto" || l.UnmarshalText([]byte(s)) != nil {
		return 0, errors.New("must be auto, kl, frobenius or the β of a divergence")
	}
	return l, nil
}

// LossName says in words what a loss is the mean of.
func LossName(l quantmf.Loss) string {
	switch l {
	case quantmf.KL:
		return "Kullback-Leibler divergence"
	case quantmf.Frobenius:
		return "half squared difference"
	case quantmf.Beta(0):
		return "Itakura-Saito divergence"
	}
	return "β-divergence of β = " + strconv.FormatFloat(float64(l), 'g', -1, 64)
}
