package shard

// This file holds the rows of a shard: those of x', NaN where nothing was observed. They are listed where
// more than half of them are 0, and in single precision where that keeps every number.

import (
	"math"
	"sync"

	"github.com/quantmf/quantmf/internal/section"
)

// encodeRows is the rows of a shard.
func (p *Plan) encodeRows(shard int, of *Start) []byte {
	from, to := p.Cut(shard).Rows()
	room := make([]float64, p.N)
	zero := func(v float64) bool { return math.Float64bits(v) == 0 }
	listed, single := 0, true
	for i := from; i < to; i++ {
		for _, v := range of.Row(room, i) {
			if !zero(v) {
				listed++
			}
			single = single && (v != v || float64(float32(v)) == v)
		}
	}
	all := (to - from) * p.N
	sparse := listed < all/2
	if !sparse {
		listed = all
	}
	var start []uint64
	var index []byte
	size := 8
	if single {
		size = 4
	}
	values := make([]byte, 0, size*listed)
	if sparse {
		start, index = []uint64{0}, make([]byte, 0, 4*listed)
	}
	for i := from; i < to; i++ {
		for j, v := range of.Row(room, i) {
			if sparse && zero(v) {
				continue
			}
			if v != v {
				v = math.NaN()
			}
			if sparse {
				index = section.Append32(index, uint32(j))
			}
			if single {
				values = section.Append32(values, math.Float32bits(float32(v)))
			} else {
				values = section.Append64(values, math.Float64bits(v))
			}
		}
		if sparse {
			start = append(start, uint64(len(index)/4))
		}
	}
	var held []uint64
	if p.Holds {
		words := (p.N + 63) / 64
		held = of.Held[from*words : to*words]
	}
	return p.whom(0, shard).encode(kindRows, section.Words("FORM", bit(sparse), bit(single)),
		section.Words("STRT", start...),
		section.Section{Tag: "COLS", Payload: index}, section.Section{Tag: "CELL", Payload: values},
		section.Words("HELD", held...))
}

// Rows are the rows of a shard, as they lie in its blob: all numbers or those listed, finite or NaN.
type Rows struct {
	*Blob
	Listed bool
	// where they are listed: row i from Start[i] up to Start[i+1], nothing checked but that these are there,
	Start   []int
	Columns []uint32  // and their columns, not checked
	Wide    []float64 // the numbers in double precision,
	Narrow  []float32 // or in single; the other is nil
	Held    []uint64  // of each row a bit for each cell, none beyond the last; nil where none is held out
}

// Rows reads the rows of a shard.
func (f *Fit) Rows(shard int) (*Rows, error) {
	b, err := f.read(RowsName(shard), kindRows, f.Plan.whom(0, shard), "FORM", "STRT", "COLS", "CELL", "HELD")
	if err != nil {
		return nil, err
	}
	from, to := f.Plan.Cut(shard).Rows()
	r := &Rows{Blob: b}
	return r, b.Fault(r.decode(to-from, f.Plan.N, f.Plan.Holds))
}

// decode reads what encodeRows wrote.
func (r *Rows) decode(d, n int, holds bool) error {
	form, err := r.Words("FORM", 2)
	if err != nil {
		return err
	}
	if form[0] > 1 || form[1] > 1 {
		return r.Fail("FORM", "a number is out of range")
	}
	r.Listed = form[0] == 1
	count, index := d*n, r.Payload("COLS")
	if r.Listed {
		count = len(index) / 4
	}
	if r.Listed && len(index) != 4*count || !r.Listed && len(index) != 0 {
		return r.Fail("CELL", "wrong length")
	}
	if form[1] == 1 {
		r.Narrow, err = numbers(r.File, count, 4,
			func(b []byte) float32 { return math.Float32frombits(section.Get32(b)) })
	} else {
		r.Wide, err = numbers(r.File, count, 8,
			func(b []byte) float64 { return math.Float64frombits(section.Get64(b)) })
	}
	if err != nil {
		return err
	}
	if r.Listed {
		words, err := r.Words("STRT", d+1)
		if err != nil {
			return err
		}
		r.Start, r.Columns = make([]int, d+1), make([]uint32, count)
		for i, w := range words {
			if w > uint64(count) {
				return r.FailAt("STRT", i, "a number is out of range")
			}
			r.Start[i] = int(w)
		}
		for k := range r.Columns {
			r.Columns[k] = section.Get32(index[4*k:])
		}
	}
	if !holds {
		_, err := r.Words("HELD", 0)
		return err
	}
	words := (n + 63) / 64
	if r.Held, err = r.Words("HELD", d*words); err != nil {
		return err
	}
	if unused := 64*words - n; unused > 0 {
		for at := words - 1; at < len(r.Held); at += words {
			if r.Held[at]>>(64-unused) != 0 {
				return r.FailAt("HELD", at, "a cell is out of range")
			}
		}
	}
	return nil
}

// numbers reads section CELL.
func numbers[F float32 | float64](f *section.File, count, size int, number func(b []byte) F) ([]F, error) {
	b := f.Payload("CELL")
	if len(b) != size*count {
		return nil, f.Fail("CELL", "wrong length")
	}
	values := make([]F, count)
	for k := range values {
		v := number(b[size*k:])
		if v == v && v-v != 0 {
			return nil, f.Fail("CELL", "a number is infinite")
		}
		values[k] = v
	}
	return values, nil
}

// Kept are the rows of shards that steps have read and later rounds need again: those read last, or, after
// Keep, as many as there is room for. It may be used by several goroutines at once.
type Kept[R any] struct {
	mu       sync.Mutex
	ofShards map[int]R
	given    bool  // Keep was called
	room     int64 // then, in bytes
}

// Keep gives room for so many bytes. Rows that no longer fit are read each time: rounds go through
// all shards, so none is worth more than another.
func (k *Kept[R]) Keep(bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ofShards, k.given, k.room = map[int]R{}, true, bytes
}

// Rows returns the rows of a shard, read where they are not kept; size is what they take in bytes.
func (k *Kept[R]) Rows(shard int, read func() (R, error), size func(R) int64) (R, error) {
	k.mu.Lock()
	rows, has := k.ofShards[shard]
	k.mu.Unlock()
	if has {
		return rows, nil
	}
	rows, err := read()
	if err != nil {
		return rows, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if bytes := size(rows); !k.given {
		k.ofShards = map[int]R{shard: rows}
	} else if _, has := k.ofShards[shard]; !has && bytes <= k.room {
		k.ofShards[shard] = rows
		k.room -= bytes
	}
	return rows, nil
}
