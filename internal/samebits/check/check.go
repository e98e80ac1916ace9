// Package check has what the tests of many packages draw and compare: calls that succeed, values that are
// equal, words of a text, numbers within a tolerance, bits, pools of workers, normal numbers, derivatives by
// differences, and the inverse of a small matrix by plain elimination. Only tests import it, with a dot.
package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// Must is the value of a call that succeeds: Must(f())(t).
func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// OK is for a call that succeeds.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal reports what is not the one that is wanted; what says which it is, in the words of fmt.Sprintf.
func Equal[T comparable](t testing.TB, got, want T, what string, args ...any) {
	if got != want {
		t.Helper()
		t.Errorf("%s: %v, want %v", fmt.Sprintf(what, args...), got, want)
	}
}

// EqualAll is Equal of the first of many values that is not.
func EqualAll[T comparable](t testing.TB, got, want []T, what string, args ...any) {
	t.Helper()
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	if i < max(len(got), len(want)) {
		t.Errorf("%s: %d values, from number %d on %v, want %d, %v", fmt.Sprintf(what, args...), len(got), i,
			got[i:min(i+3, len(got))], len(want), want[i:min(i+3, len(want))])
	}
}

// Has reports which of these a text has not.
func Has(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %.3000s", want, text)
		}
	}
}

// Lacks reports which of these a text has, and where.
func Lacks(t testing.TB, text string, unwanted ...string) {
	t.Helper()
	for _, bad := range unwanted {
		if at := strings.Index(text, bad); at >= 0 {
			t.Errorf("there is %q: %.120s", bad, text[max(at-60, 0):])
		}
	}
}

// reports counts what Near has said: after some dozens it ends the test, which may compare millions.
var reports atomic.Int32

// Near is Equal of numbers within a tolerance.
func Near(t testing.TB, got, want, tolerance float64, what string, args ...any) {
	if math.Abs(got-want) <= tolerance {
		return
	}
	t.Helper()
	t.Errorf("%s: %.17g, want %.17g within %.3g", fmt.Sprintf(what, args...), got, want, tolerance)
	if reports.Add(1)%50 == 0 {
		t.FailNow()
	}
}

// Close is Near within so much of 1 and of the number that is wanted.
func Close(t testing.TB, got, want, by float64, what string, args ...any) {
	t.Helper()
	Near(t, got, want, by*(1+math.Abs(want)), what, args...)
}

// NearAll is Near of the first number that is not.
func NearAll(t testing.TB, got, want []float64, tolerance float64, what string, args ...any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", fmt.Sprintf(what, args...), len(got), len(want))
		return
	}
	for i, x := range got {
		if !(math.Abs(x-want[i]) <= tolerance) {
			Near(t, x, want[i], tolerance, "%s, number %d", fmt.Sprintf(what, args...), i)
			return
		}
	}
}

// Same ends a test where a number has not the bits of the one that is wanted; no number is as good as any
// other that is none.
func Same(t testing.TB, got, want []float64, what string, args ...any) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", fmt.Sprintf(what, args...), len(got), len(want))
	}
	for i, x := range got {
		a, b := math.Float64bits(x), math.Float64bits(want[i])
		if a != b && !(x != x && want[i] != want[i]) {
			t.Fatalf("%s: number %d of %d is %v (%x), want %v (%x)", fmt.Sprintf(what, args...), i, len(want),
				x, a, want[i], b)
		}
	}
}

// Slow leaves a test out of the quickest, those under -short.
func Slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("not among the quickest")
	}
}

// Workers returns a pool of so many.
func Workers(t testing.TB, many int) *pool.Pool {
	p := pool.New(many, many)
	t.Cleanup(p.Close)
	return p
}

// Normal returns a standard normal number.
func Normal(r *random.Source) float64 { return elem.NormalQuantile(r.Float64() + 0x1p-54) }

// Derivative is the central difference of f in one of its numbers, which lie by on either side.
func Derivative(at *float64, by float64, f func() float64) float64 {
	was := *at
	defer func() { *at = was }()
	*at = was + by
	above := f()
	*at = was - by
	return (above - f()) / (2 * by)
}

// LargestOf is the largest magnitude.
func LargestOf(v []float64) (top float64) {
	for _, x := range v {
		top = max(top, math.Abs(x))
	}
	return top
}

// TotalOf is the sum.
func TotalOf(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// Inverse inverts a by the elimination of Gauss and Jordan, with pivots, and returns its determinant.
func Inverse(a [][]float64) (inverse [][]float64, det float64) {
	k := len(a)
	det = 1
	m := make([][]float64, k)
	for r := range m {
		m[r] = append(slices.Clone(a[r]), make([]float64, k)...)
		m[r][k+r] = 1
	}
	for p := range k {
		best := p
		for r := p; r < k; r++ {
			if math.Abs(m[r][p]) > math.Abs(m[best][p]) {
				best = r
			}
		}
		if best != p {
			m[p], m[best] = m[best], m[p]
			det = -det
		}
		pivot := m[p][p]
		det *= pivot
		for c := range m[p] {
			m[p][c] /= pivot
		}
		for r := range m {
			if r != p {
				by := m[r][p]
				for c := range m[r] {
					m[r][c] -= by * m[p][c]
				}
			}
		}
	}
	for r := range m {
		m[r] = m[r][k:]
	}
	return m, det
}
