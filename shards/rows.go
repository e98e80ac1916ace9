package shards

// This file holds the rows of a shard: those of x', NaN where nothing was observed. They are listed where
// more than half of them are 0, and in single precision where that keeps every number. -0 is written as 0,
// which it equals in every fit: numbers of x are compared, or their products added to sums that begin with 0.

import (
	"math"
	"math/bits"
	"strconv"
	"sync"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// encodeRows returns the rows of a shard.
func (p *plan) encodeRows(shard int, of *qmf.SplitStart) []byte {
	from, to := p.cut(shard).Rows()
	room := make([]float64, p.N)
	listed, single := 0, true
	for i := from; i < to; i++ {
		for _, v := range of.Row(room, i) {
			if v != 0 {
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
			if sparse && v == 0 {
				continue
			}
			if v += 0; v != v {
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
	return p.whom(kindRows, 0, shard).encode(section.Words("FORM", bit(sparse), bit(single)),
		section.Words("STRT", start...),
		section.Section{Tag: "COLS", Payload: index}, section.Section{Tag: "CELL", Payload: values},
		section.Words("HELD", held...))
}

// readRows reads the rows of a shard.
func (f *Fit) readRows(shard int) (*qmf.Shard, error) {
	b, err := f.read(kindRows, 0, shard, "FORM", "STRT", "COLS", "CELL", "HELD")
	if err != nil {
		return nil, err
	}
	p := f.plan
	r := &qmf.Shard{Cut: p.cut(shard)}
	from, to := r.Cut.Rows()
	order := make([]int, to-from)
	for i := range order {
		order[i] = from + i
	}
	r.Units = p.Pick(order)
	r.X, err = decodeRows(b.File, to-from, p.N)
	if err == nil {
		r.Held, err = decodeHeld(b.File, to-from, p.N, p.Holds)
	}
	if err == nil {
		r.Visible, err = countVisible(b.File, r, p.Partial)
	}
	return r, b.fault(err)
}

// decodeRows reads the matrix that encodeRows wrote.
func decodeRows(f *section.File, d, n int) (quantmf.Rows, error) {
	form, err := f.Words("FORM", 2)
	if err != nil {
		return nil, err
	}
	if form[0] > 1 || form[1] > 1 {
		return nil, f.Fail("FORM", "a number is out of range")
	}
	listed, single, index := form[0] == 1, form[1] == 1, f.Payload("COLS")
	count := d * n
	if listed {
		count = len(index) / 4
	}
	if listed && len(index) != 4*count || !listed && len(index) != 0 {
		return nil, f.Fail("CELL", "wrong length")
	}
	if single {
		v, err := numbers(f, count, 4,
			func(b []byte) float32 { return math.Float32frombits(section.Get32(b)) })
		if err != nil || !listed {
			return quantmf.Mat32{Rows: d, Cols: n, Data: v, Stride: n}, err
		}
		return decodeSparse(f, d, n, v)
	}
	v, err := numbers(f, count, 8,
		func(b []byte) float64 { return math.Float64frombits(section.Get64(b)) })
	if err != nil || !listed {
		return quantmf.Mat{Rows: d, Cols: n, Data: v, Stride: n}, err
	}
	return decodeSparse(f, d, n, v)
}

// decodeSparse reads where the listed numbers of d rows stand.
func decodeSparse[F float32 | float64](f *section.File, d, n int, values []F) (quantmf.Rows, error) {
	words, err := f.Words("STRT", d+1)
	if err != nil {
		return nil, err
	}
	start, columns, index := make([]int, d+1), make([]uint32, len(values)), f.Payload("COLS")
	for i, w := range words {
		if w > uint64(len(values)) {
			return nil, f.FailAt("STRT", i, "a number is out of range")
		}
		start[i] = int(w)
	}
	for k := range columns {
		columns[k] = section.Get32(index[4*k:])
	}
	x, err := quantmf.NewSparse(n, start, columns, values)
	if err != nil {
		return nil, f.Fail("STRT", "the rows are no matrix")
	}
	return x, nil
}

// decodeHeld reads of each row a bit for each cell, none beyond the last; nil where none is held out.
func decodeHeld(f *section.File, d, n int, holds bool) ([]uint64, error) {
	if !holds {
		_, err := f.Words("HELD", 0)
		return nil, err
	}
	words := (n + 63) / 64
	held, err := f.Words("HELD", d*words)
	if unused := 64*words - n; err == nil && unused > 0 {
		for at := words - 1; at < len(held); at += words {
			if held[at]>>(64-unused) != 0 {
				return nil, f.FailAt("HELD", at, "a cell is out of range")
			}
		}
	}
	return held, err
}

// countVisible counts the visible cells of each row.
func countVisible(f *section.File, r *qmf.Shard, partial bool) ([]int, error) {
	d, n := r.X.Dims()
	visible, row, words := make([]int, d), make([]float64, n), (n+63)/64
	for i := range visible {
		if err := r.X.ReadRow(row, i); err != nil {
			return nil, err
		}
		for _, v := range row {
			if v == v {
				visible[i]++
			} else if !partial {
				return nil, f.Fail("CELL", "a number is missing in a matrix of which none is")
			}
		}
		if r.Held != nil {
			for _, set := range r.Held[i*words : (i+1)*words] {
				visible[i] -= bits.OnesCount64(set)
			}
		}
		if visible[i] < 1 {
			return nil, f.Fail("CELL", "row "+strconv.Itoa(i)+" has no visible cell")
		}
	}
	return visible, nil
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

// kept are the rows of shards that steps have read and later rounds need again: those read last, or, after
// KeepRows, as many as there is room for. It may be used by several goroutines at once.
type kept struct {
	mu       sync.Mutex
	ofShards map[int]*qmf.Shard
	given    bool  // KeepRows was called
	room     int64 // then, in bytes
}

func (k *kept) keep(bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ofShards, k.given, k.room = map[int]*qmf.Shard{}, true, bytes
}

// rowsOf returns the rows of a shard, read where they are not kept.
func (f *Fit) rowsOf(shard int) (*qmf.Shard, error) {
	k := &f.kept
	k.mu.Lock()
	rows, has := k.ofShards[shard]
	k.mu.Unlock()
	if has {
		return rows, nil
	}
	rows, err := f.readRows(shard)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if bytes := sizeOf(rows); !k.given {
		k.ofShards = map[int]*qmf.Shard{shard: rows}
	} else if _, has := k.ofShards[shard]; !has && bytes <= k.room {
		k.ofShards[shard] = rows
		k.room -= bytes
	}
	return rows, nil
}

// sizeOf is the memory, in bytes, of the numbers of the rows.
func sizeOf(r *qmf.Shard) int64 {
	d, n := r.X.Dims()
	size := 8 * len(r.Held)
	switch x := r.X.(type) {
	case *quantmf.Sparse:
		size += 12 * x.Listed() // 8 in single precision
	case quantmf.Mat32:
		size += 4 * d * n
	case quantmf.Mat:
		size += 8 * d * n
	}
	return int64(size)
}
