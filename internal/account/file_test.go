package account_test

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

// file is the file of a model of 3 features and 2 samples.
func file(t *testing.T) []byte {
	x := Must(quantmf.MatOf([]float64{1, 2}, []float64{3, 1}, []float64{2, 2}))(t)
	m := Must(quantmf.FitNMF(context.Background(), x, 1, quantmf.WithEpochs(1)))(t)
	b := Must(m.MarshalBinary())(t)
	return b
}

// TestRead: what Append writes Read returns, line breaks as spaces; of a file with neither section nothing is
// known.
func TestRead(t *testing.T) {
	t.Parallel()
	plain := file(t)
	features, samples := []string{"a", "", "β\t\n"}, []string{"one", "two"}
	made := account.Made{Matrix: "x.csv", SHA256: "0123", Command: "quantmf fit -k 1 x.csv", Log1p: true,
		Top:    true,
		Losses: "kl: counts", Warnings: []string{"first", "second"},
		Unseen: account.Unseen{Values: 7, Predicted: 0.1 + 0.2, StdErr: 0.01, Fitted: 0.5, Auto: true,
			Others: []account.Other{{Method: "NMF", Predicted: -3, Worse: 1, StdErr: 2}, {Method: "BQMF"}}}}
	broken := account.Made{Matrix: "a\nb\rc"}
	for _, c := range []struct {
		names      account.Names
		made, want account.Made
		known      bool
	}{
		{account.Names{features, samples}, made, made, true},
		{account.Names{features, nil}, account.Made{Log1p: true}, account.Made{Log1p: true}, true},
		{account.Names{nil, samples}, account.Made{Top: true}, account.Made{Top: true}, true},
		{account.Names{}, broken, account.Made{Matrix: "a b c"}, true},
		{account.Names{}, account.Made{}, account.Made{}, false},
	} {
		b := Must(account.Append(plain, c.names, c.made))(t)
		names, made, known, err := account.Read(b, 3, 2)
		if err != nil || known != c.known || !reflect.DeepEqual(names, c.names) {
			t.Errorf("%q: %q, known %v, %v", c.names, names, known, err)
		}
		if !reflect.DeepEqual(made, c.want) {
			t.Errorf("made is %+v, want %+v", made, c.want)
		}
		if _, err := account.Append(b, c.names, c.made); err == nil {
			t.Errorf("%q: sections are appended twice", c.names)
		}
	}
	names, made, known, err := account.Read(plain, 3, 2)
	if err != nil || known || names.Features != nil || names.Samples != nil ||
		made.Unseen.Values != 0 {
		t.Errorf("of a file without sections: %v, %+v, %v, %v", names, made, known, err)
	}
}

// TestDamagedNames: names of another number of features or samples, cut at any byte, with bytes after them
// and of forged lengths.
func TestDamagedNames(t *testing.T) {
	t.Parallel()
	plain := file(t)
	good := slices.Concat(section.Words("", 3).Payload, section.Texts("", "a", "bc", "").Payload,
		section.Words("", 2).Payload, section.Texts("", "x", "y").Payload)
	read := func(b []byte, d, n int) error {
		t.Helper()
		with := Must(quantmf.AppendSection(plain, "name", b))(t)
		names, _, _, err := account.Read(with, d, n)
		if err != nil && (names.Features != nil || names.Samples != nil) {
			t.Errorf("names %v beside an error", names)
		}
		return err
	}
	OK(t, read(good, 3, 2))
	features := len(section.Words("", 3).Payload) + len(section.Texts("", "a", "bc", "").Payload)
	for cut := 1; cut < len(good); cut++ {
		if err := read(good[:cut], 3, 2); (err == nil) != (cut == features) {
			t.Errorf("cut to %d of %d bytes: %v", cut, len(good), err)
		}
	}
	for what, b := range map[string][]byte{
		"a byte more":          append(slices.Clone(good), 0),
		"a count beyond all":   section.Words("", 1<<63, 1).Payload,
		"a length beyond all":  section.Words("", 3, 1<<63, 0, 0).Payload,
		"a length beyond that": section.Words("", 3, math.MaxInt32, 0, 0).Payload,
	} {
		Equal(t, read(b, 3, 2), account.ErrNames, "%s", what)
	}
	for _, size := range [][2]int{{2, 2}, {4, 2}, {3, 1}, {3, 3}} {
		Equal(t, read(good, size[0], size[1]), account.ErrNames, "for %v", size)
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]struct {
		loss quantmf.Loss
		name string
	}{"kl": {quantmf.KL, "Kullback-Leibler divergence"},
		"frobenius": {quantmf.Frobenius, "half squared difference"},
		"1":         {quantmf.KL, "Kullback-Leibler divergence"},
		"0":         {quantmf.Beta(0), "Itakura-Saito divergence"},
		"1.5":       {quantmf.Beta(1.5), "β-divergence of β = 1.5"}} {
		l, err := account.ParseLoss(flag)
		if err != nil || l != want.loss || account.LossName(l) != want.name {
			t.Errorf("%s: %v, %q, %v", flag, l, account.LossName(l), err)
		}
	}
	for _, flag := range []string{"", "KL", "auto", "1.5x"} {
		if _, err := account.ParseLoss(flag); err == nil {
			t.Errorf("%q is a loss", flag)
		}
	}
}
