package beam

// This file holds what a worker's process keeps between bundles: the fits it takes part in, with the rows of their
// shards, which are most of what a step reads and the same in every round.

import (
	"context"
	"sync"
	"time"

	"github.com/quantmf/quantmf"
)

// keptFor is how long a fit is kept after its last bundle.
const keptFor = 5 * time.Minute

// fitKey tells fits of a process apart: by their store, and by the call of Fit, since another fit may be planned in the
// folder of one that was removed.
type fitKey struct{ folder, call string }

// keptFit is a fit that bundles of this process have opened.
type keptFit struct {
	fit   *quantmf.Sharded
	store *Store
	uses  int
	idle  *time.Timer // that forgets it, while uses is 0
}

var kept = struct {
	sync.Mutex
	fits map[fitKey]*keptFit
}{fits: map[fitKey]*keptFit{}}

// acquire opens a fit, or finds it open. room is how many bytes of rows may be kept. The caller releases it.
func acquire(key fitKey, room int64) (fit *quantmf.Sharded, release func(), err error) {
	kept.Lock()
	defer kept.Unlock()
	k := kept.fits[key]
	if k == nil {
		store, err := OpenStore(context.Background(), key.folder) // which outlives the bundle
		if err != nil {
			return nil, nil, err
		}
		fit, err := quantmf.OpenSharded(store)
		if err != nil {
			store.Close()
			return nil, nil, err
		}
		fit.KeepRows(max(room, 0))
		k = &keptFit{fit: fit, store: store}
		k.idle = time.AfterFunc(keptFor, func() { forget(key, k) })
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

// forget closes a fit that no bundle uses: k alone, if it is not nil.
func forget(key fitKey, k *keptFit) {
	kept.Lock()
	defer kept.Unlock()
	now := kept.fits[key]
	if now == nil || k != nil && now != k || now.uses > 0 {
		return
	}
	now.idle.Stop()
	now.store.Close()
	delete(kept.fits, key)
}
