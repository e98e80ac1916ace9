package quantmf

// This file holds fits whose rows are split over shards: the public face. Every process that takes part
// works on one store of named blobs, and no two of them need to run at the same time:
//
//	PlanNMF or PlanQMF              once: the rows of every shard, the start
//	for round := 0; ; round++ {
//	    Step(ctx, round, shard)     once for every shard, in any order, anywhere, as often as one likes
//	    Reduce(ctx, round)          once all of them are there: sums their parts, makes the next V
//	}                               until Reduce says Over
//	Finish                          the model
//
// A model has the bits that [FitNMF] and [FitQMF] give it on one machine, for any number of shards.
// (shardnmf.go and shardqmf.go say how; shardfiles.go has the layout of the blobs.)

import (
	"context"
	"errors"
)

// Store keeps named blobs. Names are of the letters a to z, digits and hyphens. A name is given the same
// bytes whenever it is given any, so it does not matter which of two writers comes last.
type Store interface {
	// Get returns the blob of a name; no bytes and no error where there is none.
	Get(name string) ([]byte, error)
	// Put keeps a blob, whole or not at all: nobody ever gets a part of it. It does not keep data itself.
	Put(name string, data []byte) error
}

// Remover is a [Store] that can also forget. [Sharded.Reduce] then removes what no later step reads;
// in other stores it stays.
type Remover interface {
	Store
	// Remove forgets the blob of a name. It is no error where there is none.
	Remove(name string) error
}

// Sharded is a fit whose rows are split, as a store has it. It may be used by several goroutines at once,
// where the store may.
type Sharded struct {
	store Store
}

// Round is where a fit stands.
type Round struct {
	Number int     // from 0
	Epoch  int     // epochs done
	Epochs int     // of so many at most
	Loss   float64 // the newest mean divergence of the visible cells that is known; NaN before the first
	Over   bool    // there is nothing left but Finish
}

// ShardError names a shard whose step is missing, or whose blobs are damaged: Step(ctx, Round, Shard) makes
// them again.
type ShardError struct {
	Round, Shard int
	Err          error // what is wrong
}

func (e *ShardError) Error() string {
	return "quantmf: round " + itoa(e.Round) + ", shard " + itoa(e.Shard) + ": " + e.Err.Error()
}
func (e *ShardError) Unwrap() error { return e.Err }

var errNotYet = errors.New("quantmf: shards are not there yet")

// PlanNMF begins an NMF by multiplicative updates whose rows are split into so many shards.
func PlanNMF(ctx context.Context, store Store, shards int, x Mat, rank int, opts ...FitOption) error {
	return errNotYet
}

// PlanQMF begins a QMF, of all rows as one batch, whose rows are split into so many shards.
func PlanQMF(ctx context.Context, store Store, shards int, x Mat, rank int, opts ...FitOption) error {
	return errNotYet
}

// OpenSharded opens the fit that [PlanNMF] or [PlanQMF] has left in a store.
func OpenSharded(store Store) (*Sharded, error) { return nil, errNotYet }

// Shards returns the number of shards.
func (s *Sharded) Shards() int { return 0 }

// Round returns where the fit stands: the round whose steps are to be made.
func (s *Sharded) Round() (Round, error) { return Round{}, errNotYet }

// Step makes the step of one shard in a round: it reads V of the round and the shard's own state, and writes
// the shard's next state and its part of V's update and of the losses. Done again it writes the same bytes; where
// they are whole already it does nothing, nor does it in a round after the last.
func (s *Sharded) Step(ctx context.Context, round, shard int) error { return errNotYet }

// Reduce sums the parts of a round in their fixed order, writes the next V, and returns the round that comes
// next. Done again it writes the same bytes; after the last round it does nothing. A part that is missing or damaged
// is a [*ShardError].
func (s *Sharded) Reduce(ctx context.Context, round int) (Round, error) { return Round{}, errNotYet }

// Finish returns the model, [*NMF] or [*QMF], of a fit that is over.
func (s *Sharded) Finish(ctx context.Context) (Model, error) { return nil, errNotYet }
