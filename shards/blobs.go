package shards

// This file holds the blobs: their names, whose each is, and what is said of one that is not as it should be.
// Each has the layout of a model file (internal/section), of a kind of its own from 32 on, and says in WHOM
// whose it is:
//
//	WHOM  u the fit's fingerprint, round, shard
//
//	plan               WORD u sizes and settings; REAL f settings; UNIT f the shifts of rows, if any
//	rows-SSSS          FORM u 1 where numbers are listed, 1 in single precision; CELL x', NaN where nothing
//	                   was observed: row by row, or those of columns COLS from STRT u on; HELD u a bit for
//	                   each cell, 1 where it is held out
//	round-RRRRRR       STAT u, HIST f, VALI f the journal; NUMB f the numbers that V's steps go on from
//	v-RRRRRR           VFAC f k × n: V as the steps of the round read it; VTWO f of Newton's method, k × n
//	                   or none: what they read beside it
//	main-RRRRRR        REAL f what Reduce alone goes on from, if anything: V at the best epoch, Ṽ and its
//	                   moments; of Newton's method see newton.go
//	state-RRRRRR-SSSS  REAL f, IDX0 u a shard before the round
//	part-RRRRRR-SSSS   what the shard adds in the round (parts.go)
//
// A number of a round or a shard has leading zeros. Every payload has a length that the plan
// tells, and is held against it.

import (
	"errors"
	"slices"
	"strconv"
	"strings"

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

func kindName(kind uint32) string {
	names := [...]string{"the plan of a fit in shards", "the rows of a shard", "a round of a fit in shards",
		"V of a round", "what reducing a round goes on from", "the state of a shard",
		"the part of a shard in a round"}
	if kind < kindPlan || kind > kindPart {
		return "of unknown kind"
	}
	return names[kind-kindPlan]
}

// planName is the name of the plan.
const planName = "plan"

// whom tells what a blob is: of which kind, and to which fit, round and shard it belongs.
type whom struct {
	kind         uint32
	id           uint64
	round, shard int
}

// name is the name of the blob.
func (w whom) name() string {
	number := func(i, digits int) string {
		s := strconv.Itoa(i)
		return "-" + strings.Repeat("0", max(digits-len(s), 0)) + s
	}
	first := [...]string{planName, "rows", "round", "v", "main", "state", "part"}[w.kind-kindPlan]
	switch w.kind {
	case kindPlan:
		return first
	case kindRows:
		return first + number(w.shard, 4)
	case kindState, kindPart:
		return first + number(w.round, 6) + number(w.shard, 4)
	}
	return first + number(w.round, 6)
}

func (w whom) encode(sections ...section.Section) []byte {
	return section.Encode(w.kind,
		append([]section.Section{section.Words("WHOM", w.id, uint64(w.round), uint64(w.shard))}, sections...))
}

// is tells whether section WHOM of a file has the same fit, round and shard.
func (w whom) is(f *section.File) (bool, error) {
	v, err := f.Words("WHOM", 3)
	return err == nil && v[0] == w.id && v[1] == uint64(w.round) && v[2] == uint64(w.shard), err
}

// way says what writes the blob again where no step does.
func (w whom) way() string {
	switch {
	case w.kind == kindPart || w.kind == kindRound || w.kind == kindState && w.round > 0:
		return ""
	case (w.kind == kindV || w.kind == kindMain) && w.round > 0:
		return "the reduce of round " + strconv.Itoa(w.round-1) + " writes it again"
	}
	return "the plan of the same fit writes it again"
}

// errMissing is the error of a blob that does not exist.
var errMissing = errors.New("is not there")

// blobError is an error with the name of its blob.
type blobError struct {
	Name string
	Err  error
	Way  string // what writes the blob again, if that is no step
}

func (e *blobError) Error() string {
	s := "quantmf: blob " + e.Name + ": " + e.Err.Error()
	if e.Way != "" {
		s += " (" + e.Way + ")"
	}
	return s
}
func (e *blobError) Unwrap() error { return e.Err }

// damaged tells whether an error is of a missing or damaged blob, and not of the store.
func damaged(err error) bool {
	var format *section.Error
	return errors.Is(err, errMissing) || errors.As(err, &format)
}

// blob is a blob that was read: it is whole and belongs to the right fit, round and shard. Its reader checks
// its numbers.
type blob struct {
	*section.File
	name string
	made *[2]int // the round and the shard of the step that makes it again; nil: none does
	way  string  // what else does
}

// fault makes an error that names the blob from err; nil from nil.
func (b *blob) fault(err error) error {
	if err == nil {
		return nil
	}
	blob := &blobError{Name: b.name, Err: err}
	if damaged(err) {
		blob.Way = b.way
	}
	err = blob
	if b.made != nil {
		err = &StepError{b.made[0], b.made[1], err}
	}
	return err
}

// restore fills the parts from section REAL, in their order, and returns the count integers of IDX0.
func (b *blob) restore(parts []section.Part, count int) ([]uint64, error) {
	index, err := b.Words("IDX0", count)
	if err == nil {
		err = b.Fill("REAL", parts)
	}
	return index, b.fault(err)
}

// read gets and decodes a blob, which must have the sections of the tags.
func (f *Fit) read(kind uint32, round, shard int, tags ...string) (*blob, error) {
	return read(f.store, f.plan.whom(kind, round, shard), tags...)
}

// read is the same for any store. Of a plan it does not ask whose it is.
func read(store Store, of whom, tags ...string) (*blob, error) {
	b := &blob{name: of.name(), way: of.way()}
	data, err := store.Get(b.name)
	if err == nil && data == nil {
		err = errMissing
	}
	if err == nil {
		b.File, err = section.Decode(data, of.kind, kindName, append(slices.Clip(tags), "WHOM"), nil)
	}
	if err == nil && of.kind != kindPlan {
		var is bool
		if is, err = of.is(b.File); err == nil && !is {
			err = b.Fail("WHOM", "the blob is of another fit, round or shard")
		}
	}
	if err != nil {
		return nil, b.fault(err)
	}
	return b, nil
}

// put writes a blob.
func (f *Fit) put(kind uint32, round, shard int, sections ...section.Section) error {
	of := f.plan.whom(kind, round, shard)
	return f.store.Put(of.name(), of.encode(sections...))
}
