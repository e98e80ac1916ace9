package beam

// This file holds what a worker process keeps between bundles: its open fits, with the rows of their shards.
// Rows are the same in every round, and most of what a step reads.

import (
	"context"
	"sync"
	"time"

	"github.com/quantmf/quantmf/shards"
)

// keptFor is how long a fit is kept after its last bundle.
const keptFor = 5 * time.Minute

// fitKey identifies a fit of a process, by its store and by the call of Fit. The call is needed because
// another fit may be planned in the folder of one that was removed.
type fitKey struct{ folder, call string }

// keptFit is a fit that bundles of this process have opened.
type keptFit struct {
	fit   *shards.Fit
	store *Store
	uses  int
	idle  *time.Timer // forgets the fit; it runs while uses is 0
}

var kept = struct {
	sync.Mutex
	fits map[fitKey]*keptFit
}{fits: map[fitKey]*keptFit{}}

// acquire opens a fit, or returns the open one. room is how many bytes of rows may be kept. The caller
// releases the fit.
func acquire(key fitKey, room int64) (fit *shards.Fit, release func(), err error) {
	kept.Lock()
	defer kept.Unlock()
	k := kept.fits[key]
	if k == nil {
		store, err := OpenStore(context.Background(), key.folder) // the store outlives the bundle
		if err != nil {
			return nil, nil, err
		}
		fit, err := shards.Open(store)
		if err != nil {
			store.Close()
			return nil, nil, err
		}
		fit.KeepRows(max(room, 0))
		k = &keptFit{fit: fit, store: store}
		k.idle = time.AfterFunc(keptFor, func() { forget(key) })
		kept.fits[key] = k
	}
	k.idle.Stop()
	k.uses++
	return k.fit, func() {
		kept.Lock()
		defer kept.Unlock()
		if k.uses--; k.uses == 0 {
			k.idle.Reset(keptFor)
		}
	}, nil
}

// forget closes a fit that no bundle uses.
func forget(key fitKey) {
	kept.Lock()
	defer kept.Unlock()
	k := kept.fits[key]
	if k == nil || k.uses > 0 {
		return
	}
	k.idle.Stop()
	k.store.Close()
	delete(kept.fits, key)
}
