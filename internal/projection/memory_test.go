package projection

import (
	"reflect"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
)

// hold counts the numbers that lie in slices below v.
func hold(a *pool.Arena, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.Type() != reflect.TypeFor[*pool.Pool]() && !v.IsNil() {
			hold(a, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			hold(a, v.Field(i))
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Float64:
			a.Floats(v.Cap())
		case reflect.Int:
			pool.Make[int](a, v.Cap())
		default:
			for i := range v.Len() {
				hold(a, v.Index(i))
			}
		}
	}
}

// TestCounted: the arena of a projector counts all its slices, whether it makes them or only counts.
func TestCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("makes large projectors")
	}
	for _, kind := range methods(1, 20, 100) {
		for _, size := range [][3]int{{160, 80, 8}, {500, 256, 10}, {300, 40, 3}, {64, 400, 20},
			{800, 800, 20}} {
			for _, hidden := range []float64{0, 0.2} {
				p := newProblem(size[0], size[1], size[2])
				p.hide(hidden)
				if kind == truncation && hidden > 0 {
					continue
				}
				made, dry, got := pool.New(1, 1), pool.Idle(1, 1), pool.DryArena()
				made.Memory = pool.NewArena()
				by := p.projector(kind, made)
				p.projector(kind, dry)
				if u, is := by.(*unrolled); is {
					hold(got, reflect.ValueOf(u.update))
				} else {
					hold(got, reflect.ValueOf(by))
				}
				if told := made.Memory.Most(); told != got.Most() || dry.Memory.Most() != told {
					t.Errorf("%v of %v, hidden %v: %v bytes, by a dry arena %v, it holds %v", kind, size,
						hidden, told, dry.Memory.Most(), got.Most())
				}
			}
		}
	}
}
