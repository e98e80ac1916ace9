package projection

import (
	"reflect"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
)

// held returns how many numbers lie in slices below v.
func held(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*pool.Pool]() && !v.IsNil() {
			return held(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += held(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Float64 {
			return v.Cap()
		}
		for i := range v.Len() {
			n += held(v.Index(i))
		}
	}
	return n
}

// TestNumbers holds Numbers against the lengths of all slices of a projector.
func TestNumbers(t *testing.T) {
	one := pool.New(1, 1)
	defer one.Close()
	for _, kind := range methods(1, 20, 100) {
		for _, size := range [][3]int{{160, 80, 8}, {500, 256, 10}, {300, 40, 3}, {64, 400, 20},
			{800, 800, 20}} {
			for _, hidden := range []float64{0, 0.2} {
				p := newProblem(size[0], size[1], size[2])
				p.hide(hidden)
				if kind == truncation && hidden > 0 {
					continue
				}
				by := p.projector(kind, one)
				got := held(reflect.ValueOf(by))
				if u, ok := by.(*unrolled); ok {
					got = held(reflect.ValueOf(*u.updates))
				}
				told := Numbers(kind.kind, kind.updates, float64(p.d), float64(p.n), float64(p.k), hidden > 0)
				if ratio := told / float64(got); !(ratio > 0.9 && ratio < 1.5) {
					t.Errorf("%v of %v, hidden %v: %v numbers, it holds %d: %.2f", kind, size, hidden, told,
						got, ratio)
				}
			}
		}
	}
}
