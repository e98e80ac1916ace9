package kernel

// What is done number by number, in Go.

import "github.com/quantmf/quantmf/internal/elem"

func exp_g(to, x []float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = elem.Exp(v)
	}
}

func log_g(to, x []float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = elem.Log(v)
	}
}

func logistic_g(to, x []float64, ref, shift, std, rate float64) {
	x = x[:len(to)]
	for i, v := range x {
		to[i] = elem.Logistic(((v - ref) - shift) / std * rate)
	}
}

func divide_g(to, a, z []float64) {
	a, z = a[:len(to)], z[:len(to)]
	for i := range to {
		to[i] = a[i] / z[i]
	}
}

func weigh_g(to, a, z []float64) {
	a, z = a[:len(to)], z[:len(to)]
	for i := range to {
		to[i] = a[i] / float64(z[i]*z[i])
	}
}

func ratio_g(num, x, t []float64, low float64) {
	x, t = x[:len(num)], t[:len(num)]
	for i := range num {
		num[i] = x[i] / max(t[i], low)
	}
}

func lossKL_g(x, t, r []float64, low float64) float64 {
	t, r = t[:len(x)], r[:len(x)]
	var s [Lanes]float64
	for i, v := range x {
		if v > 0 {
			s[i%Lanes] += float64(v*elem.Log(max(r[i], tiny))) + (max(t[i], low) - v)
		} else {
			s[i%Lanes] += t[i]
		}
	}
	return Reduce(&s)
}
