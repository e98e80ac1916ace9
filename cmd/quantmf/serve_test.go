package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// frame returns a frame of a header and 64-bit numbers.
func frame(header string, numbers ...float64) []byte {
	b := append([]byte(frameMagic), make([]byte, 12)...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(header)))
	binary.LittleEndian.PutUint64(b[8:], uint64(8*len(numbers)))
	b, _ = binary.Append(append(b, header...), binary.LittleEndian, numbers)
	return b
}

// answered is a frame of the server.
type answered struct {
	ID       *int64
	Quantmf  string
	Result   any
	Error    map[string]any
	Progress map[string]any
	Arrays   []struct {
		Type  string
		Shape []int
	}
	body []byte
}

// numbers returns the numbers of the only array.
func (a *answered) numbers() []float64 {
	x := make([]float64, len(a.body)/8)
	binary.Decode(a.body, binary.LittleEndian, x)
	return x
}

func readAnswers(t testing.TB, out []byte) (all []answered) {
	t.Helper()
	for r := bytes.NewReader(out); r.Len() > 0; {
		head, body, err := readLengths(r)
		OK(t, err)
		text := make([]byte, head)
		a := answered{body: make([]byte, body)}
		Must(io.ReadFull(r, text))(t)
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		Must(io.ReadFull(r, a.body))(t)
		all = append(all, a)
	}
	return all
}

// served returns what the server answers to frames: by id the last frame of each, and all without an id.
func served(t testing.TB, limit int64, frames ...[]byte) (of map[int64]answered, others []answered,
	err error) {
	t.Helper()
	var out bytes.Buffer
	err = serve(bytes.NewReader(bytes.Join(frames, nil)), &out, limit, os.Getppid)
	of = map[int64]answered{}
	for i, a := range readAnswers(t, out.Bytes()) {
		switch {
		case i == 0:
			if a.Quantmf == "" {
				t.Error("no greeting")
			}
		case a.ID == nil:
			others = append(others, a)
		case a.Progress == nil:
			of[*a.ID] = a
		}
	}
	return of, others, err
}

const room = 1 << 30

func TestServe(t *testing.T) {
	x := []float64{1, 2, 3, 4, 2, 4, 6, 9, 5, 1, 2, 2}
	matrix := `"args":{"method":"nmf","rank":1,"x":{"$array":0},"options":{"epochs":3}},` +
		`"arrays":[{"type":"f8","shape":[3,4]}]}`
	t.Run("models are those of the package", func(t *testing.T) {
		single := strings.NewReplacer("nmf", "bqmf", `"epochs":3`, `"discrete":[2]`).Replace(matrix)
		of, others, err := served(t, room, frame(`{"id":1,"call":"fit",`+matrix, x...),
			frame(`{"id":2,"call":"fit",`+single, x...))
		if err != nil || len(others) > 0 || of[1].Error != nil || of[2].Error != nil {
			t.Fatal(of[1].Error, of[2].Error, others, err)
		}
		m := quantmf.Mat{Rows: 3, Cols: 4, Stride: 4, Data: x}
		file, _ := Must(quantmf.FitNMF(t.Context(), m, 1, quantmf.WithEpochs(3)))(t).MarshalBinary()
		discrete, _ := Must(quantmf.FitBQMF(t.Context(), m, 1,
			quantmf.WithDiscrete(2)))(t).MarshalBinary()
		if !bytes.Contains(of[1].body, file) || !bytes.Contains(of[2].body, discrete) {
			t.Error("the file of the model is not among the arrays")
		}
	})
	for _, c := range []struct {
		name, header string
		numbers      []float64
		want         []float64
	}{
		{"an array", `{"id":1,"call":"softSort","args":{"x":{"$array":0},"options":{"epsilon":0}},
			"arrays":[{"type":"f8","shape":[3]}]}`, []float64{3, 1, 2}, []float64{1, 2, 3}},
		{"a list", `{"id":1,"call":"softSort","args":{"x":[3,1,2],"options":{"epsilon":0}}}`, nil,
			[]float64{1, 2, 3}},
		{"rows", `{"id":1,"call":"softQuantileRows","args":{"x":[[3,1],[7,8]],"q":[[0,5]],
			"options":{"epsilon":0}}}`, nil, []float64{5, 0, 0, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, _, err := served(t, room, frame(c.header, c.numbers...))
			a := of[1]
			got := a.numbers()
			if err != nil || a.Error != nil || len(got) != len(c.want) {
				t.Fatal(a.Error, err, got)
			}
			for i := range got {
				if math.Abs(got[i]-c.want[i]) > 1e-9 {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		})
	}
}

func TestServeErrors(t *testing.T) {
	good := frame(`{"id":9,"call":"softRank","args":{"x":[1,2]}}`)
	for _, c := range []struct{ name, header, kind, message string }{
		{"no call of that name", `{"id":1,"call":"x"}`, "Error", "no such call"},
		{"an argument of another kind", `{"id":1,"call":"softRank","args":{"x":"a"}}`, "ShapeError",
			"list of numbers"},
		{"rows of two lengths", `{"id":1,"call":"fit","args":{"method":"nmf","rank":1,"x":[[1,2],[3]]}}`,
			"ShapeError", "row"},
		{"an option out of range", `{"id":1,"call":"softRank","args":{"x":[1],"options":{"epsilon":-1}}}`,
			"OptionError", "epsilon -1"},
		{"an option that is none", `{"id":1,"call":"softRank","args":{"x":[1],"options":{"a":1}}}`,
			"OptionError",
			"there is no such option"},
		{"a row that is no whole number", `{"id":1,"call":"fit","args":{"method":"bqmf","rank":1,
			"x":[[1,2],[3,4]],"options":{"discrete":[0.5]}}}`, "OptionError", "whole numbers"},
		{"a number that no fit takes",
			`{"id":1,"call":"fit","args":{"method":"qmf","rank":1,"x":[[1,-2],[3,4]]}}`,
			"DataError", "negative"},
		{"no model", `{"id":1,"call":"open","args":{"model":"a"}}`, "ShapeError", "bytes"},
		{"a rank that is no number", `{"id":1,"call":"fit","args":{"method":"nmf","rank":"2","x":[[1]]}}`,
			"OptionError", `"2"`},
		{"a fit without room", `{"id":1,"call":"footprint","args":{"method":"nmf","rows":1,"columns":1}}`,
			"OptionError", "rank"},
	} {
		t.Run(c.name, func(t *testing.T) {
			of, _, err := served(t, room, frame(c.header), good)
			e := of[1].Error
			if err != nil || e == nil || e["kind"] != c.kind ||
				!strings.Contains(e["message"].(string), c.message) {
				t.Errorf("%v, %v", e, err)
			}
			if of[9].Error != nil || len(of[9].body) != 16 {
				t.Error("the next call has no answer")
			}
		})
	}
	for _, c := range []struct {
		name, problem string
		frame         []byte
		ends          bool // the server cannot tell where the next frame begins
	}{
		{"no JSON", "JSON", frame(`{`), false},
		{"no id", "no id", frame(`{"call":"softRank"}`), false},
		{"a body without arrays", "body of 8 bytes", frame(`{"id":1,"call":"softRank"}`, 1), false},
		{"an array of no type", "array 0",
			frame(`{"id":1,"call":"a","arrays":[{"type":"x","shape":[1]}]}`, 1),
			false},
		{"an array too large", "array 0",
			frame(`{"id":1,"call":"a","arrays":[{"type":"f8","shape":[9223372036854775807,8]}]}`, 1), false},
		{"no frame", "is none", []byte("GET / HTTP/1.1\r\n\r\n"), true},
		{"half a frame", "ends within", good[:20], true},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := good
			if c.ends {
				after = nil
			}
			of, others, err := served(t, room, c.frame, after)
			if a, has := of[1]; has {
				others = append(others, a)
			}
			if len(others) != 1 || !strings.Contains(others[0].Error["message"].(string), c.problem) {
				t.Fatalf("%v, %v", others, err)
			}
			if _, answered := of[9]; answered == c.ends || (err != nil) != c.ends {
				t.Errorf("the server goes on: %v, error %v", answered, err)
			}
		})
	}
}

func TestServeMemory(t *testing.T) {
	big := frame(`{"id":1,"call":"softRank","args":{"x":{"$array":0}},
		"arrays":[{"type":"f8","shape":[4096]}]}`, make([]float64, 4096)...)
	fit := frame(`{"id":2,"call":"fit","args":{"method":"nmf","rank":200,"x":{"$array":0}},
		"arrays":[{"type":"f8","shape":[30,30]}]}`, make([]float64, 900)...)
	of, _, err := served(t, 20000, big, fit, frame(`{"id":3,"call":"softRank","args":{"x":[1,2]}}`))
	OK(t, err)
	for _, id := range []int64{1, 2} {
		if e := of[id].Error; e == nil || e["kind"] != "MemoryError" || e["limit"] != 20000.0 {
			t.Errorf("call %d: %v", id, e)
		}
	}
	if of[3].Error != nil {
		t.Error(of[3].Error)
	}
}

// A call is cancelled by its id.
func TestServeCancel(t *testing.T) {
	x := make([]float64, 400)
	for i := range x {
		x[i] = float64(i*i%17) + 1
	}
	long := `"call":"fit","args":{"method":"qmf","rank":3,"x":{"$array":0},"options":{"epochs":10000000}},
		"arrays":[{"type":"f8","shape":[20,20]}]}`
	in, client := io.Pipe()
	out, server := io.Pipe()
	ended := make(chan error)
	go func() {
		err := serve(in, server, room, os.Getppid)
		server.Close()
		ended <- err
	}()
	told := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(out)
		told <- all
	}()
	for _, f := range [][]byte{frame(`{"id":1,`+long, x...), frame(`{"id":2,`+long, x...),
		frame(`{"id":1,`+long,
			x...), frame(`{"cancel":1}`), frame(`{"cancel":77}`), frame(`{"cancel":2}`)} {
		Must(client.Write(f))(t)
	}
	client.Close()
	OK(t, <-ended)
	cancelled := map[int64]bool{}
	twice := false
	for _, a := range readAnswers(t, <-told) {
		switch {
		case a.Error == nil:
		case a.ID == nil:
			twice = strings.Contains(a.Error["message"].(string), "is running")
		default:
			cancelled[*a.ID] = a.Error["kind"] == "Cancelled"
		}
	}
	if !cancelled[1] || !cancelled[2] || !twice {
		t.Error(cancelled, twice)
	}
}

func FuzzServe(f *testing.F) {
	f.Add(frame(`{"id":1,"call":"softSort","args":{"x":{"$array":0}},"arrays":[{"type":"f8","shape":[3]}]}`,
		3, 1, 2))
	f.Add(frame(`{"id":1,"call":"fit","args":{"method":"bqmf","rank":1,"x":[[1,2],[3,4]],
		"options":{"epochs":2}}}`))
	f.Add(frame(`{"id":1,"call":"fit","args":{"method":"nmf","rank":1,"x":{"columns":2,"start":{"$array":0},
		"index":{"$array":1},"values":{"$array":2}}},"arrays":[{"type":"i8","shape":[2]},
		{"type":"u4","shape":[1]},{"type":"f8","shape":[1]}]}`, 0, 1, 2))
	f.Add(frame(`{"cancel":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		served(t, 1<<20, b)
	})
}

func TestFramesRoundTrip(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	m := quantmf.NewMat(2, 3)
	copy(m.Data, []float64{1, 2, 3, 4, 5, math.Inf(1)})
	OK(t, writeFrame(w, map[string]any{"id": 4, "result": map[string]any{"m": m, "file": []byte("abc"),
		"infinite": math.Inf(-1), "nan": math.NaN(), "list": []any{1.5, "é"}}}))
	a := readAnswers(t, b.Bytes())
	text := b.String()
	if len(a) != 1 || len(a[0].Arrays) != 4 || len(a[0].body) != 8+8+48+8 || string(a[0].body[:3]) != "abc" {
		t.Fatalf("%q", text)
	}
	Has(t, text, `"infinite":{"$array":1}`, `"list":[1.5,"é"]`, `"shape":[2,3]`,
		`"shape":[]`)
}
