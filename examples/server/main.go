// Command server serves one model over HTTP: it learns it from a table in the background, scores new samples
// and fills what they lack, with intervals.
//
//	POST /fit?method=bqmf&rank=10   a table (CSV, JSON, npy, ...), features in rows, or with samples=rows
//	                                samples
//	POST /score                     one number a sample, the odd ones first
//	POST /impute?p=0.9              missing cells, with intervals where the model is a BQMF
//	GET  /model, PUT /model         the model file, which the command quantmf reads, too
//	GET  /status, GET /metrics      how far the last fit is, null before the first; counts for Prometheus
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/rowfile"
)

const (
	mostBody   = 64 << 20  // bytes of a request
	mostMemory = 512 << 20 // of a table, and of a fit
	atOnce     = 8         // requests that compute; others wait
)

var (
	errNoModel = errors.New("there is no model yet")
	errBusy    = errors.New("a fit is running, or the server is ending")
)

type server struct {
	ctx                context.Context               // ends when the server does, and its fit with it
	slots              chan struct{}                 // of atOnce requests
	current            atomic.Pointer[rowfile.Model] // replaced as a whole, and never changed
	status             atomic.Pointer[status]
	running            atomic.Bool
	fits               sync.WaitGroup
	requests, failures atomic.Int64
}

// status is how far the last fit is.
type status struct {
	Phase quantmf.Phase
	Done  float64
	Error string `json:",omitempty"`
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /fit", s.answer(s.fit))
	mux.Handle("POST /score", s.answer(s.score))
	mux.Handle("POST /impute", s.answer(s.impute))
	mux.Handle("PUT /model", s.answer(s.put))
	mux.Handle("GET /model", s.answer(s.get))
	mux.Handle("GET /status", s.answer(func(*http.Request) (any, error) { return s.status.Load(), nil }))
	mux.Handle("GET /metrics", s.answer(func(*http.Request) (any, error) {
		return fmt.Appendf(nil, "requests %d\nfailures %d\n", s.requests.Load(), s.failures.Load()), nil
	}))
	return http.MaxBytesHandler(mux, mostBody)
}

// answer runs f in one of the slots. What is wrong is the client's: the package says so by typed errors.
func (s *server) answer(f func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-r.Context().Done():
			return
		}
		v, err := f(r)
		switch data, raw := v.([]byte); {
		case err != nil:
			s.failures.Add(1)
			code := map[error]int{errNoModel: http.StatusNotFound, errBusy: http.StatusConflict}[err]
			http.Error(w, err.Error(), cmp.Or(code, http.StatusBadRequest))
		case raw:
			_, _ = w.Write(data) // an error is a client that has gone, here and below
		default:
			_ = json.NewEncoder(w).Encode(v)
		}
	})
}

// read reads the table of a request within the limits.
func read(r *http.Request) (*rowfile.File, error) {
	return rowfile.Read(r.Body, "table", rowfile.Options{Memory: mostMemory,
		SamplesInRows: r.URL.Query().Get("samples") == "rows"})
}

// fit begins a fit of the table in the background; there is one at a time.
func (s *server) fit(r *http.Request) (any, error) {
	var method quantmf.Method
	q := r.URL.Query()
	unknown := method.UnmarshalText([]byte(cmp.Or(q.Get("method"), "bqmf")))
	rank, wrong := strconv.Atoi(cmp.Or(q.Get("rank"), "10"))
	t, err := read(r)
	if err := errors.Join(unknown, wrong, err); err != nil {
		return nil, err
	}
	need, err := quantmf.MemoryFor(r.Context(), method, t.Rows, rank, quantmf.WithMissingValues())
	switch {
	case err != nil:
		return nil, err
	case need.Fit > mostMemory:
		return nil, fmt.Errorf("the fit would take %d bytes, of %d", need.Fit, mostMemory)
	case s.ctx.Err() != nil || !s.running.CompareAndSwap(false, true):
		return nil, errBusy
	}
	s.fits.Go(func() { s.learn(method, t, rank) })
	return "begun", nil
}

func (s *server) learn(method quantmf.Method, t *rowfile.File, rank int) {
	defer s.running.Store(false)
	m, err := quantmf.Fit(s.ctx, method, t.Rows, rank, quantmf.WithMissingValues(), quantmf.WithWorkers(1),
		quantmf.WithProgress(func(p quantmf.Progress) error {
			s.status.Store(&status{Phase: p.Phase, Done: p.Done})
			return nil
		}))
	if err != nil {
		s.status.Store(&status{Error: err.Error()})
		return
	}
	s.current.Store(&rowfile.Model{Of: m, Features: t.Features, Samples: t.Samples})
	s.status.Store(&status{Done: 1})
}

// put takes a model file that anyone may have made: every number in it is checked.
func (s *server) put(r *http.Request) (any, error) {
	file, unread := io.ReadAll(r.Body)
	m, err := rowfile.UnmarshalModel(file, quantmf.WithWorkers(1))
	switch err := errors.Join(unread, err); {
	case err != nil:
		return nil, err
	case m.Features == nil || m.Log1p:
		return nil, errors.New("the model has no names of features, or is one of log(1+x)")
	}
	s.current.Store(m)
	return "taken", nil
}

func (s *server) get(*http.Request) (any, error) {
	if m := s.current.Load(); m != nil {
		return m.MarshalBinary()
	}
	return nil, errNoModel
}

// samples reads new samples, their features in the model's order; those that the table lacks are missing.
func (s *server) samples(r *http.Request) (m *rowfile.Model, x quantmf.Rows, names []string, err error) {
	if m = s.current.Load(); m == nil {
		return nil, nil, nil, errNoModel
	}
	t, err := read(r)
	if err != nil {
		return nil, nil, nil, err
	}
	x, err = t.Match(m.Features)
	return m, x, t.Samples, err
}

type scored struct {
	Sample string
	Score  float64
}

func (s *server) score(r *http.Request) (any, error) {
	m, x, names, err := s.samples(r)
	if err != nil {
		return nil, err
	}
	scores, err := m.Of.Scores(r.Context(), x)
	out := make([]scored, len(scores))
	for j, v := range scores {
		out[j] = scored{names[j], v}
	}
	slices.SortStableFunc(out, func(a, b scored) int { return cmp.Compare(b.Score, a.Score) })
	return out, err
}

type cell struct {
	Feature, Sample string
	Value           float64
	Low, High       *float64 `json:",omitempty"`
}

func (s *server) impute(r *http.Request) (any, error) {
	m, x, names, err := s.samples(r)
	if err != nil {
		return nil, err
	}
	values, err := m.Of.Predict(r.Context(), x)
	var lo, hi quantmf.Mat
	if b, is := m.Of.(*quantmf.BQMF); is && err == nil {
		// 0, which is refused, for a word
		p, _ := strconv.ParseFloat(cmp.Or(r.URL.Query().Get("p"), "0.9"), 64)
		lo, hi, err = b.PredictInterval(r.Context(), x, p)
	}
	out, row := []cell{}, make([]float64, len(names))
	for i := 0; i < len(m.Features) && err == nil; i++ {
		err = x.ReadRow(row, i)
		for j, v := range row {
			if v == v {
				continue
			}
			c := cell{Feature: m.Features[i], Sample: names[j], Value: values.At(i, j)}
			if lo.Rows > 0 {
				c.Low, c.High = &lo.Row(i)[j], &hi.Row(i)[j]
			}
			out = append(out, c)
		}
	}
	return out, err
}

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s := &server{ctx: ctx, slots: make(chan struct{}, atOnce)}
	h := &http.Server{Addr: *addr, Handler: s.routes(), ReadTimeout: time.Minute} // of a slow client
	s.fits.Go(func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = h.Shutdown(late)
	})
	if err := h.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	s.fits.Wait()
}
