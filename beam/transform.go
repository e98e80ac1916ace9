package beam

// This file places new samples in blocks. The columns of a matrix are cut into blocks, and each block is
// placed by itself under a model, by [quantmf.NMF.Transform] or the same method of another model. Blocks do
// not depend on each other, so the graph is numbers → GroupByKey → place. Model, blocks and coordinates are
// blobs. The names of model and blocks are digests of their bytes, those of coordinates digests of these
// names.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/section"
)

func init() {
	sdk.RegisterDoFn(&place{})
}

// Transform returns the k × n' coordinates of the columns of x, d × n', with the same bits as m.Transform.
// The workers of a runner place the columns in the given number of blocks. Transform leaves model, blocks and
// coordinates in the store, so the same call does not place a block again. m.Placed(v).Loss(x) is then
// m.Score. Errors: those of m.Transform, in the words of the runner, and one for a number of blocks below 1
// or above n'.
func Transform(ctx context.Context, store *Store, m quantmf.Model, x quantmf.Mat, blocks int,
	run Run) (quantmf.Mat, error) {
	if blocks < 1 || blocks > x.Cols {
		return quantmf.Mat{}, fmt.Errorf("beam: %d blocks of %d columns: must be from 1 to that", blocks,
			x.Cols)
	}
	if err := run.settle(); err != nil {
		return quantmf.Mat{}, err
	}
	data, err := m.MarshalBinary()
	if err != nil {
		return quantmf.Mat{}, err
	}
	model, err := keep(store, "model", data)
	if err != nil {
		return quantmf.Mat{}, err
	}
	names := make([]string, blocks)
	for b := range names {
		from, to := x.Cols*b/blocks, x.Cols*(b+1)/blocks
		block := quantmf.NewMat(x.Rows, to-from)
		for i := range x.Rows {
			copy(block.Row(i), x.Row(i)[from:to])
		}
		if names[b], err = keep(store, "x", marshalMat(block)); err != nil {
			return quantmf.Mat{}, err
		}
	}
	there := func(b int) error { _, err := getMat(store, placed(model, names[b])); return err }
	if err := untilThere(ctx, run, blocks, there, &place{store.folder, model, names}); err != nil {
		return quantmf.Mat{}, err
	}
	var v quantmf.Mat
	for b, name := range names {
		block, err := getMat(store, placed(model, name))
		if err != nil {
			return quantmf.Mat{}, err
		}
		from := x.Cols * b / blocks
		if v.Data == nil {
			v = quantmf.NewMat(block.Rows, x.Cols)
		}
		if want := x.Cols*(b+1)/blocks - from; block.Rows != v.Rows || block.Cols != want {
			return quantmf.Mat{}, fmt.Errorf("beam: store %s: %s is %d × %d, not %d × %d", store.folder,
				placed(model, name), block.Rows, block.Cols, v.Rows, want)
		}
		for c := range v.Rows {
			copy(v.Row(c)[from:], block.Row(c))
		}
	}
	return v, nil
}

// place places one of the blocks.
type place struct {
	Store, Model string
	Blocks       []string
}

func (f *place) ProcessElement(ctx context.Context, number int, _ func(*int) bool) error {
	block := f.Blocks[number]
	store, err := OpenStore(ctx, f.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	data, err := store.Get(f.Model)
	if err != nil {
		return err
	}
	m, err := quantmf.UnmarshalModel(data)
	if err != nil {
		return fmt.Errorf("store %s: %s: %w", f.Store, f.Model, err)
	}
	x, err := getMat(store, block)
	if err != nil {
		return err
	}
	v, err := m.Transform(ctx, x)
	if err != nil {
		return err
	}
	return store.Put(placed(f.Model, block), marshalMat(v))
}

// digest returns a name for what has these bytes.
func digest(kind string, data []byte) string {
	sum := sha256.Sum256(data)
	return kind + "-" + hex.EncodeToString(sum[:])
}

// keep writes a blob under the digest of its bytes, and returns this name.
func keep(store *Store, kind string, data []byte) (string, error) {
	name := digest(kind, data)
	there, err := store.Get(name)
	if err != nil || digest(kind, there) == name {
		return name, err
	}
	return name, store.Put(name, data)
}

// placed returns the name of the coordinates of a block under a model.
func placed(model, block string) string { return digest("placed", []byte(model+" "+block)) }

// kindMat is the kind of the file of a matrix, which has its dimensions and its numbers row by row.
const kindMat = 64

var errAbsent = errors.New("there is no such blob")

func marshalMat(m quantmf.Mat) []byte {
	data := make([]float64, 0, m.Rows*m.Cols)
	for i := range m.Rows {
		data = append(data, m.Row(i)...)
	}
	return section.Encode(kindMat,
		[]section.Section{section.Words("dims", uint64(m.Rows), uint64(m.Cols)),
			section.Floats("data", data)})
}

func getMat(store *Store, name string) (quantmf.Mat, error) {
	data, err := store.need(name)
	if err != nil {
		return quantmf.Mat{}, err
	}
	m, err := unmarshalMat(data)
	if err != nil {
		return quantmf.Mat{}, store.fault(name, err)
	}
	return m, nil
}

func unmarshalMat(data []byte) (quantmf.Mat, error) {
	f, err := sections(data, kindMat, "a matrix", "dims", "data")
	if err != nil {
		return quantmf.Mat{}, err
	}
	dims, err := f.Words("dims", 2)
	if err != nil {
		return quantmf.Mat{}, err
	}
	rows, cols, numbers := dims[0], dims[1], f.Payload("data")
	if count := uint64(len(numbers)) / 8; len(numbers)%8 != 0 || rows == 0 || cols == 0 ||
		count/rows != cols || count%rows != 0 {
		return quantmf.Mat{}, f.Fail("dims", "are not those of the numbers")
	}
	m := quantmf.NewMat(int(rows), int(cols))
	_, err = binary.Decode(numbers, binary.LittleEndian, m.Data) // NaN is a missing value
	return m, err
}
