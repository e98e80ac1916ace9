package quantmf

// Tests of the door of package shards.

import (
	"reflect"
	"testing"
	"unsafe"
)

// TestPlannedSettings: a plan has every setting that the numbers of a fit depend on, so that a step of a
// shard computes what a fit on one machine does. Those left out reach a plan in another way, or are of other
// fits.
func TestPlannedSettings(t *testing.T) {
	apart := map[string]string{
		"init": "the factors themselves are blobs", "initU": "the factors themselves are blobs",
		"initV": "the factors themselves are blobs", "shrinkage": "chosen by the start, which a plan has",
		"line":          "chosen by the start, which a plan has",
		"fixedU":        "the factors of the start have it, a plan how many columns it is",
		"sampleWeights": "a plan does not take them", "cellWeights": "a plan does not take them",
		"projection": "of FitQMFQ, which is not split", "maps": "of WithModel, which a plan does not take",
		"chosen": "of MethodAuto, which a plan is not", "discrete": "of FitBQMF, which is not split",
		"mayRest": "settled by the start, which a plan has", "whole": "of fits that judge others",
	}
	of := reflect.TypeFor[settings]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		var s settings
		field := reflect.NewAt(of.Field(i).Type,
			unsafe.Pointer(reflect.ValueOf(&s).Elem().Field(i).UnsafeAddr())).Elem()
		switch field.Kind() {
		case reflect.Float64:
			field.SetFloat(1)
		case reflect.Int:
			field.SetInt(1)
		case reflect.Uint8, reflect.Uint64:
			field.SetUint(1)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Struct:
			if field.Type() == reflect.TypeFor[Penalties]() {
				field.Field(2).SetFloat(1)
			}
		}
		if _, left := apart[name]; left {
			continue
		}
		if field.IsZero() {
			t.Errorf("%s: a kind that this test cannot set, %v", name, field.Kind())
			continue
		}
		p := s.planned()
		if back := settingsOf(&p); !reflect.DeepEqual(back, s) {
			t.Errorf("%s is not in a plan", name)
		}
	}
}
