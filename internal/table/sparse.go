package table

// This file makes a matrix of all numbers from a file that lists a part of them. Cells that are not listed
// are 0; entries of a cell that is listed twice are added up in the order of the file.

import (
	"fmt"

	"github.com/quantmf/quantmf"
)

// sparse collects entries. It keeps them as they come until there is one for every 16 numbers of the matrix,
// or all are known. So the size in the header of a short file cannot claim much memory.
type sparse struct {
	s          *source
	rows, cols int
	pieces     [][]entry
	count      int
	x          quantmf.Mat // once there are enough
}

type entry struct {
	i, j uint32
	v    float64
}

// A matrix may take spare bytes and packing bytes an entry that is listed: at least one
// number in 2048 is.
const (
	spare   = 64 << 20
	packing = 8 * 2048
)

func newSparse(s *source, rows, cols uint64) (*sparse, error) {
	if err := s.takeMatrix(rows, cols); err != nil { // it is taken later, if at all
		return nil, err
	}
	s.give(8 * int64(rows*cols))
	return &sparse{s: s, rows: int(rows), cols: int(cols)}, nil
}

func (p *sparse) add(i, j int, v float64) error {
	if p.x.Data != nil {
		p.x.Data[i*p.cols+j] += v
		return nil
	}
	last := len(p.pieces) - 1
	if last < 0 || len(p.pieces[last]) == cap(p.pieces[last]) {
		room := min(max(256, p.count), piece)
		if err := p.s.take(16*int64(room), "so many entries"); err != nil {
			return err
		}
		p.pieces = append(p.pieces, make([]entry, 0, room))
		last++
	}
	p.pieces[last] = append(p.pieces[last], entry{uint32(i), uint32(j), v})
	if p.count++; p.count > p.rows*p.cols/16 {
		return p.fill()
	}
	return nil
}

// fill makes the matrix of all numbers.
func (p *sparse) fill() error {
	if err := p.s.takeMatrix(uint64(p.rows), uint64(p.cols)); err != nil {
		return err
	}
	p.x = quantmf.NewMat(p.rows, p.cols)
	for k, piece := range p.pieces {
		for _, e := range piece {
			p.x.Data[int(e.i)*p.cols+int(e.j)] += e.v
		}
		p.s.give(16 * int64(cap(piece)))
		p.pieces[k] = nil
	}
	return nil
}

// matrix returns the matrix. All entries must be known.
func (p *sparse) matrix() (quantmf.Mat, error) {
	if p.x.Data != nil {
		return p.x, nil
	}
	if full := 8 * int64(p.rows) * int64(p.cols); full > spare+packing*int64(p.count) {
		return p.x, p.s.tooEmpty(full, uint64(p.rows), uint64(p.cols), p.count)
	}
	err := p.fill()
	return p.x, err
}

// tooEmpty is the error of a matrix with so few entries for its size that its header must be wrong.
func (s *source) tooEmpty(full int64, rows, cols uint64, count int) error {
	return &Error{File: s.file, Err: ErrMemory,
		Problem: fmt.Sprintf("%d × %d numbers with only %d of them in the file would take %s: leave out "+
			"the rows and columns that hold nothing", rows, cols, count, Size(float64(full)))}
}
