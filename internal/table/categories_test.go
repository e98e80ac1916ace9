package table_test

// This file tests features whose values are words.

import (
	"bytes"
	"fmt"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

func TestCategories(t *testing.T) {
	t.Parallel()
	const in = "id,sex,age,stage,grade\np1,f,50,2,none\np2,m,NA,1,mild\np3,,41,2,none\np4,f,7,,bad\n"
	o := table.Options{Missing: true, Transpose: true, Categories: []string{table.AutoCategories, "stage"}}
	got := Must(read(in, o))(t)
	const want = "sex|age|stage|grade; p1|p2|p3|p4; 0 1 NaN 0/50 NaN 41 7/1 0 1 NaN/2 1 2 0"
	if is, words := shown(got), fmt.Sprint(got.Words); is != want ||
		words != "[[f m] [] [1 2] [bad mild none]]" {
		t.Errorf("%s, %s", is, words)
	}
	rows, first := got.Indicators()
	if is := shown(rows); is != "sex=m|age|stage=2|grade=bad|grade=mild|grade=none; p1|p2|p3|p4; 0 1 NaN "+
		"0/50 NaN 41 7/1 0 1 NaN/0 0 0 1/0 1 0 0/1 0 1 0" || fmt.Sprint(first) != "[0 1 2 3]" {
		t.Error(is, first)
	}
	var b bytes.Buffer
	if err := table.WriteWords(&b, "x.csv", "", got.Features, got.Samples, got.X, got.Words); err != nil ||
		b.String() != ",p1,p2,p3,p4\nsex,f,m,,f\nage,50,NaN,41,7\nstage,2,1,2,\ngrade,none,mild,none,bad\n" {
		t.Error(b.String(), err)
	}
	many := "id,a,w\n"
	for j := range 70 {
		many += fmt.Sprintf("p%d,1,w%d\n", j, j)
	}
	o.Categories = []string{"auto"}
	fails(t, many, o, `in: feature "w": 70 different words, such as "w0", "w1", "w10", ..., where a `+
		`category has at most 64: leave the feature out`)
	fails(t, "id,a,b\np,ND,1\nq,1,2\nr,2,3\n", o,
		`in: feature "a": 1 word beside 2 numbers, such as "ND": give -na `+
			`for words that mean a missing value, or name the feature in -categories`)
}
