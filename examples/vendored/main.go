// Command vendored is built where there is no network: "go mod vendor" copies the package into a folder
// beside the program, and -mod=vendor builds from that alone. Its test does both, in a module of its own,
// twice, and compares the programs byte for byte.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/quantmf/quantmf"
)

// run fits a table and prints the hash-like sum of its model's file: the same on every machine.
func run(w io.Writer) error {
	x := quantmf.NewMat(12, 30)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, float64((i+2)*(j+3)%17+(i+1)*j))
		}
	}
	m, err := quantmf.FitQMF(context.Background(), x, 3)
	if err != nil {
		return err
	}
	file, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	sum := uint64(0)
	for _, b := range file {
		sum = 31*sum + uint64(b)
	}
	_, err = fmt.Fprintf(w, "a model of %d bytes, %016x\n", len(file), sum)
	return err
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
