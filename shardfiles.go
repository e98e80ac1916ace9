package quantmf

// This file holds the blobs of fits whose rows are split. Each has the layout of a model file
// (internal/section), of a kind of its own from 32 on, and says in WHOM whose it is:
//
//	WHOM  u the fit's fingerprint, round, shard
//
//	plan               WORD u sizes and settings; REAL f settings; UNIT f, EACH u, WGHT f the units of rows, if any
//	rows-SSSS          FORM u 1 where numbers are listed, 1 in single precision; CELL x', NaN where nothing was
//	                   observed: row by row, or those of columns COLS from STRT u on; HELD u as in cells
//	round-RRRRRR       STAT u, HIST f, VALI f the journal; NUMB f the numbers that V's steps go on from
//	v-RRRRRR           VFAC f k × n: V as the steps of the round read it
//	main-RRRRRR        REAL f what Reduce alone goes on from, if anything: V at the best epoch, Ṽ and its moments
//	state-RRRRRR-SSSS  REAL f, IDX0 u a shard before the round
//	part-RRRRRR-SSSS   what the shard adds in the round; see shardnmf.go and shardqmf.go
//
// A number of a round or a shard has leading zeros. Every payload has a length that the plan
// tells, and is held against it.

import (
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/runs"
	"github.com/quantmf/quantmf/internal/section"
)

// The kinds of blobs.
const (
	kindPlan = 32 + iota
	kindRows
	kindRound
	kindV
	kindMain
	kindState
	kindPart
)

var blobKinds = map[uint32]string{kindPlan: "the plan of a fit in shards", kindRows: "the rows of a shard", kindRound: "a round of a fit in shards",
	kindV: "V of a round", kindMain: "what reducing a round goes on from", kindState: "the state of a shard", kindPart: "the part of a shard in a round"}

const planBlob = "plan"

func digits(i, n int) string {
	s := itoa(i)
	for len(s) < n {
		s = "0" + s
	}
	return s
}

func rowsBlob(shard int) string         { return "rows-" + digits(shard, 4) }
func roundBlob(round int) string        { return "round-" + digits(round, 6) }
func vBlob(round int) string            { return "v-" + digits(round, 6) }
func mainBlob(round int) string         { return "main-" + digits(round, 6) }
func stateBlob(round, shard int) string { return "state-" + digits(round, 6) + "-" + digits(shard, 4) }
func partBlob(round, shard int) string  { return "part-" + digits(round, 6) + "-" + digits(shard, 4) }

// whom is whose a blob is.
type whom struct {
	id           uint64
	round, shard int
}

func (w whom) encode(kind uint32, sections ...section.Section) []byte {
	return section.Encode(kind, append([]section.Section{section.Words("WHOM", w.id, uint64(w.round), uint64(w.shard))}, sections...))
}

// errMissing is of a blob that is not there.
var errMissing = errors.New("is not there")

// blobError names the blob that an error is of.
type blobError struct {
	name string
	err  error
}

func (e *blobError) Error() string { return "quantmf: blob " + e.name + ": " + e.err.Error() }
func (e *blobError) Unwrap() error { return e.err }

// read gets and decodes a blob, which must have the sections of the tags and be the given one's.
func (s *Sharded) read(name string, kind uint32, of whom, tags ...string) (*file, error) {
	data, err := s.store.Get(name)
	if err == nil && data == nil {
		err = errMissing
	}
	var f *file
	if err == nil {
		f, err = decodeSections(data, kind, append(slices.Clip(tags), "WHOM"))
	}
	var w []uint64
	if err == nil {
		w, err = f.words("WHOM", 3)
	}
	if err == nil && (w[0] != of.id || w[1] != uint64(of.round) || w[2] != uint64(of.shard)) {
		err = f.fail("WHOM", "the blob is of another fit, round or shard")
	}
	if err != nil {
		return nil, &blobError{name, err}
	}
	return f, nil
}

// damaged tells whether an error says that a blob is missing, or is not what it should be: not that
// the store failed.
func isDamaged(err error) bool {
	var format *FormatError
	return errors.Is(err, errMissing) || errors.As(err, &format)
}

// shardPlan is what all steps of a fit know: the data's sizes, what the options came to, and who has
// which rows.
type shardPlan struct {
	settings
	kind            uint32
	id              uint64
	strict          bool
	d, n, k, shards int
	runs            []int // where runs of rows begin, and d
	visible         int   // cells
	heldOut         int
	partial, holds  bool // cells are hidden, held out
	units
	// Of a QMF.
	origin        Start
	lambda, scale float64
}

func (p *shardPlan) whom(round, shard int) whom { return whom{p.id, round, shard} }

// setRuns cuts the rows.
func (p *shardPlan) setRuns() {
	p.runs = runs.Of(p.d)
	if p.kind == kindNMF {
		p.runs = nmf.Runs(p.d, p.n, p.k)
	}
}

// cut returns the runs of a shard.
func (p *shardPlan) cut(shard int) runs.Cut {
	count := len(p.runs) - 1
	return runs.Cut{Bounds: p.runs, From: shard * count / p.shards, To: (shard + 1) * count / p.shards}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// planWords are the integers of a plan, and what each may at most be.
const planWords = 27

func (p *shardPlan) words() []uint64 {
	return []uint64{uint64(p.kind), p.id, uint64(p.d), uint64(p.n), uint64(p.k), uint64(p.shards), uint64(p.visible), uint64(p.heldOut),
		bit(p.partial), bit(p.holds), bit(p.strict), bit(p.signed), uint64(int64(p.all) + 1<<12), uint64(p.origin),
		uint64(p.maxIterations), uint64(p.levels), uint64(p.epochs), p.seed, uint64(p.batchRows), uint64(p.patience),
		uint64(p.squash), uint64(p.schedule), uint64(p.start), uint64(p.ends), uint64(p.updates), bit(p.missing), bit(p.mapped)}
}

func planBounds(kind uint32) [planWords]uint64 {
	const size, any = 1<<31 - 1, math.MaxUint64
	return [planWords]uint64{kindQMF, any, size, size, size, size, 1 << 62, 1 << 62, 1, 1, 1, 1, 1 << 13, uint64(StartSVD),
		size, size, size, any, size, size, uint64(SquashArctan), uint64(ScheduleConstant), uint64(StartSVD), uint64(EndsPinned), uint64(UpdatesMultiplicative), 1, 1}
}

func (p *shardPlan) reals() []section.Part {
	return []section.Part{section.Within([]float64{p.epsilon}, 0, 1e12), section.Positive([]float64{p.tolerance, p.learningRate, p.penalty, p.lambda, p.scale}),
		section.Within([]float64{float64(p.loss)}, -2, 4), section.Within([]float64{p.validation}, 0, 1)}
}

func (p *shardPlan) encode() []byte {
	var each []uint64
	for _, e := range p.each {
		each = append(each, uint64(int64(e)+1<<12))
	}
	return p.whom(0, 0).encode(kindPlan, section.Words("WORD", p.words()...), section.Parts("REAL", p.reals()),
		section.Floats("UNIT", p.shift), section.Words("EACH", each...), section.Floats("WGHT", p.weight))
}

// readPlan reads the plan of a store.
func readPlan(store Store) (*shardPlan, error) {
	data, err := store.Get(planBlob)
	if err == nil && data == nil {
		err = errMissing
	}
	var f *file
	if err == nil {
		f, err = decodeSections(data, kindPlan, []string{"WHOM", "WORD", "REAL", "UNIT", "EACH", "WGHT"})
	}
	var p *shardPlan
	if err == nil {
		p, err = f.plan()
	}
	if err != nil {
		return nil, &blobError{planBlob, err}
	}
	return p, nil
}

func (f *file) plan() (*shardPlan, error) {
	w, err := f.words("WORD", planWords)
	if err != nil {
		return nil, err
	}
	for i, most := range planBounds(kindQMF) {
		if w[i] > most || i < 6 && i != 1 && w[i] < 1 {
			return nil, f.failAt("WORD", i, "a number is out of range")
		}
	}
	p := &shardPlan{kind: uint32(w[0]), id: w[1], d: int(w[2]), n: int(w[3]), k: int(w[4]), shards: int(w[5]), visible: int(w[6]), heldOut: int(w[7]),
		partial: w[8] == 1, holds: w[9] == 1, strict: w[10] == 1, origin: Start(w[13])}
	p.signed, p.all = w[11] == 1, int(w[12])-1<<12
	p.maxIterations, p.levels, p.epochs, p.seed, p.batchRows, p.patience = int(w[14]), int(w[15]), int(w[16]), w[17], int(w[18]), int(w[19])
	p.squash, p.schedule, p.start, p.ends, p.updates, p.missing, p.mapped = Squash(w[20]), Schedule(w[21]), Start(w[22]), Ends(w[23]), Updates(w[24]), w[25] == 1, w[26] == 1
	if limit.TooMany(max(p.d, p.n), max(p.levels, 2)) || uint64(p.k) > limit.Cells/uint64(p.d+p.n) {
		return nil, f.failAt("WORD", 4, "the model would need too much memory")
	}
	if p.kind == kindQMF && (p.levels < 2 || p.batchRows < p.d) {
		return nil, f.failAt("WORD", 15, "a number is out of range")
	}
	parts := p.reals()
	if err := formatError(f.Fill("REAL", parts)); err != nil {
		return nil, err
	}
	v := parts[1].V
	p.epsilon, p.tolerance, p.learningRate, p.penalty, p.lambda, p.scale = parts[0].V[0], v[0], v[1], v[2], v[3], v[4]
	p.loss, p.validation = divergence.Loss(parts[2].V[0]), parts[3].V[0]
	p.shrinkage = p.lambda
	if p.kind == kindQMF && !(p.epsilon >= 1e-12) || p.kind == kindNMF && p.epsilon != 0 {
		return nil, f.failAt("REAL", 0, "ε is "+ftoa(p.epsilon))
	}
	perRow := func(tag string) int64 {
		if len(f.Payload(tag)) == 0 {
			return 0
		}
		return int64(p.d)
	}
	if p.shift, err = f.vectorIn("UNIT", perRow("UNIT"), -math.MaxFloat64, math.MaxFloat64); err != nil {
		return nil, err
	}
	if p.weight, err = f.vectorIn("WGHT", perRow("WGHT"), 0, math.MaxFloat64); err != nil {
		return nil, err
	}
	each, err := f.words("EACH", int(perRow("EACH")))
	if err != nil {
		return nil, err
	}
	for i, e := range each {
		if e > 1<<13 {
			return nil, f.failAt("EACH", i, "a number is out of range")
		}
		p.each = append(p.each, int(e)-1<<12)
	}
	if p.signed != (len(p.shift) > 0) || (len(p.each) > 0) != (len(p.weight) > 0) {
		return nil, f.fail("UNIT", "wrong length")
	}
	if len(p.shift) == 0 {
		p.shift = nil
	}
	if len(p.weight) == 0 {
		p.weight = nil
	}
	p.setRuns()
	if p.shards > len(p.runs)-1 {
		return nil, f.failAt("WORD", 5, "there are more shards than runs of rows")
	}
	return p, nil
}

// encodeRows is the rows of a shard: those of x', NaN where nothing was observed. They are listed where more than half of
// them are 0, and in single precision where that keeps every number.
func (p *shardPlan) encodeRows(c *cells, shard int) ([]byte, error) {
	from, to := p.cut(shard).Rows()
	room := make([]float64, p.n)
	zero := func(v float64) bool { return math.Float64bits(v) == 0 }
	listed, single := 0, true
	for i := from; i < to; i++ {
		for _, v := range c.observedRow(room, i) {
			if !zero(v) {
				listed++
			}
			single = single && (v != v || float64(float32(v)) == v)
		}
	}
	all := (to - from) * p.n
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
		for j, v := range c.observedRow(room, i) {
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
	if p.holds {
		held = c.held[from*c.words() : to*c.words()]
	}
	return p.whom(0, shard).encode(kindRows, section.Words("FORM", bit(sparse), bit(single)), section.Words("STRT", start...),
		section.Section{Tag: "COLS", Payload: index}, section.Section{Tag: "CELL", Payload: values}, section.Words("HELD", held...)), c.trouble.get()
}

// rowsOf returns the rows of a shard, from memory where they are kept there.
func (s *Sharded) rowsOf(shard int) (*cells, error) {
	s.kept.mu.Lock()
	c := s.kept.ofShards[shard]
	s.kept.mu.Unlock()
	if c == nil {
		var err error
		if c, err = s.readCells(shard); err != nil {
			return nil, err
		}
		s.kept.mu.Lock()
		if size := c.size(); !s.kept.given {
			s.kept.ofShards = map[int]*cells{shard: c}
		} else if s.kept.ofShards[shard] == nil && size <= s.kept.room {
			s.kept.ofShards[shard] = c
			s.kept.room -= size
		}
		s.kept.mu.Unlock()
	}
	own := *c
	own.trouble = new(trouble) // of one step
	return &own, nil
}

// size is the memory of the numbers that the cells hold.
func (c *cells) size() int64 {
	size := 8 * len(c.held)
	switch x := c.source.(type) {
	case *Sparse:
		size += 4*len(x.index) + 8*len(x.wide) + 4*len(x.narrow)
	case Mat32:
		size += 4 * len(x.Data)
	case Mat:
		size += 8 * len(x.Data)
	}
	return int64(size)
}

// readCells reads the rows of a shard, as the cells of a fit of them alone but for the counts of the whole.
func (s *Sharded) readCells(shard int) (*cells, error) {
	p := s.plan
	f, err := s.read(rowsBlob(shard), kindRows, p.whom(0, shard), "FORM", "STRT", "COLS", "CELL", "HELD")
	if err != nil {
		return nil, err
	}
	c, err := f.cells(p, shard)
	if err != nil {
		return nil, &blobError{rowsBlob(shard), err}
	}
	return c, nil
}

// cells reads what encodeRows wrote.
func (f *file) cells(p *shardPlan, shard int) (*cells, error) {
	from, to := p.cut(shard).Rows()
	d := to - from
	form, err := f.words("FORM", 2)
	if err != nil {
		return nil, err
	}
	if form[0] > 1 || form[1] > 1 {
		return nil, f.fail("FORM", "a number is out of range")
	}
	var x Rows
	if form[1] == 1 {
		x, err = holder(f, d, p.n, form[0] == 1, 4, func(b []byte) float32 { return math.Float32frombits(section.Get32(b)) })
	} else {
		x, err = holder(f, d, p.n, form[0] == 1, 8, func(b []byte) float64 { return math.Float64frombits(section.Get64(b)) })
	}
	if err != nil {
		return nil, err
	}
	order := make([]int, d)
	for i := range order {
		order[i] = from + i
	}
	c := &cells{sizes: sizes{d, p.n}, source: x, trouble: new(trouble), missing: p.missing, partial: p.partial, visible: p.visible, heldOut: p.heldOut,
		rows: make([]int, d), units: p.units.pick(order)}
	c.mat, _ = x.(Mat)
	held := 0
	if p.holds {
		held = d * c.words()
	}
	if held, err := f.words("HELD", held); err != nil {
		return nil, err
	} else if p.holds {
		c.held = held
	}
	room := make([]float64, p.n)
	for i := range d {
		for _, v := range c.observedRow(room, i) {
			if v == v {
				c.rows[i]++
			} else if !p.partial {
				return nil, f.fail("CELL", "a number is missing in a matrix of which none is")
			}
		}
		for w, set := range c.heldOf(i) {
			if unused := 64*(w+1) - p.n; unused > 0 && set>>(64-unused) != 0 {
				return nil, f.failAt("HELD", i*c.words()+w, "a cell is out of range")
			}
			c.rows[i] -= bits.OnesCount64(set)
		}
		if c.rows[i] < 1 {
			return nil, f.fail("CELL", "row "+itoa(i)+" has no visible cell")
		}
	}
	return c, nil
}

// holder reads numbers of so many bytes, finite or NaN.
func holder[F float32 | float64](f *file, d, n int, sparse bool, size int, number func(b []byte) F) (Rows, error) {
	b, index := f.Payload("CELL"), f.Payload("COLS")
	count := d * n
	if sparse {
		count = len(index) / 4
	}
	if len(b) != size*count || sparse && len(index) != 4*count || !sparse && len(index) != 0 {
		return nil, f.fail("CELL", "wrong length")
	}
	values := make([]F, count)
	for k := range values {
		v := number(b[size*k:])
		if v == v && v-v != 0 {
			return nil, f.fail("CELL", "a number is infinite")
		}
		values[k] = v
	}
	if !sparse {
		switch v := any(values).(type) {
		case []float32:
			return Mat32{d, n, v, n}, nil
		case []float64:
			return Mat{d, n, v, n}, nil
		}
	}
	words, err := f.words("STRT", d+1)
	if err != nil {
		return nil, err
	}
	start, columns := make([]int, d+1), make([]uint32, count)
	for i, w := range words {
		if w > uint64(count) {
			return nil, f.failAt("STRT", i, "a number is out of range")
		}
		start[i] = int(w)
	}
	for k := range columns {
		columns[k] = section.Get32(index[4*k:])
	}
	x, err := NewSparse(n, start, columns, values)
	if err != nil {
		return nil, f.fail("STRT", "the rows are no matrix")
	}
	return x, nil
}
