// Command server serves one model over HTTP: it learns it from a table in the background, scores new samples
// and fills what they lack, with intervals.
//
//	POST /fit?method=bqmf&rank=10   a table (CSV, ...), features in rows, or samples with samples=rows
//	POST /score                     one number a sample, the odd ones first
//	POST /impute?p=0.9              missing cells, with intervals where the model is a BQMF
//	GET  /model, PUT /model         the model file
//	GET  /status, GET /metrics      how far the fit is; counts for Prometheus
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
	"math"
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
	errBusy    = errors.New("a fit is running")
)

// served is a model with the names of its features. It is replaced as a whole, and never changed.
type served struct {
	model    quantmf.Model
	features []string
	file     []byte
}

type server struct {
	ctx                context.Context // ends when the server does, and its fit with it
	slots              chan struct{}
	current            atomic.Pointer[served]
	requests, failures atomic.Int64

	fits   sync.WaitGroup
	mu     sync.Mutex // of status
	status struct {
		Running bool
		Phase   quantmf.Phase
		Done    float64
		Error   string
	}
}

func newServer(ctx context.Context) *server {
	return &server{ctx: ctx, slots: make(chan struct{}, atOnce)}
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(r *http.Request) (any, error){"POST /fit": s.fit,
		"POST /score": s.score, "POST /impute": s.impute, "PUT /model": s.put, "GET /model": s.get,
		"GET /status": func(*http.Request) (any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.status, nil
		},
		"GET /metrics": func(*http.Request) (any, error) {
			return fmt.Appendf(nil, "requests %d\nfailures %d\n", s.requests.Load(), s.failures.Load()), nil
		}} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, f) })
	}
	return mux
}

// answer runs f in one of the slots. What is wrong is the client's: the package says so by typed errors.
func (s *server) answer(w http.ResponseWriter, r *http.Request, f func(r *http.Request) (any, error)) {
	s.requests.Add(1)
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	v, err := f(r)
	switch data, raw := v.([]byte); {
	case errors.Is(err, errNoModel):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errBusy):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		s.failures.Add(1)
		http.Error(w, err.Error(), http.StatusBadRequest)
	case raw:
		_, _ = w.Write(data) // an error is a client that has gone, here and below
	default:
		_ = json.NewEncoder(w).Encode(v)
	}
}

func table(r *http.Request) (*rowfile.File, error) {
	return rowfile.Read(r.Body, "table", rowfile.Options{Memory: mostMemory,
		SamplesInRows: r.URL.Query().Get("samples") == "rows"})
}

// fit begins a fit of the table in the background; there is one at a time.
func (s *server) fit(r *http.Request) (any, error) {
	method, q := quantmf.MethodBQMF, r.URL.Query()
	rank, err := strconv.Atoi(cmp.Or(q.Get("rank"), "10"))
	if err == nil {
		err = method.UnmarshalText([]byte(cmp.Or(q.Get("method"), "bqmf")))
	}
	if err != nil {
		return nil, err
	}
	t, err := table(r)
	if err != nil {
		return nil, err
	}
	d, n := t.Rows.Dims()
	need, err := quantmf.MemoryOf(method, d, n, rank, quantmf.WithMissingValues())
	if err == nil && need.Fit > mostMemory {
		err = fmt.Errorf("the fit would take %d bytes, of %d", need.Fit, mostMemory)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Running || s.ctx.Err() != nil {
		return nil, errBusy
	}
	s.status.Running, s.status.Error, s.status.Done = true, "", 0
	s.fits.Go(func() { s.learn(method, t, rank) })
	return s.status, nil
}

func (s *server) learn(method quantmf.Method, t *rowfile.File, rank int) {
	m, err := quantmf.Fit(s.ctx, method, t.Rows, rank, quantmf.WithMissingValues(), quantmf.WithWorkers(1),
		quantmf.WithProgress(func(p quantmf.Progress) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.status.Phase, s.status.Done = p.Phase, p.Done
			return nil
		}))
	var file, names []byte
	if err == nil {
		file, err = m.MarshalBinary()
	}
	if err == nil {
		names, err = json.Marshal(t.Features)
	}
	if err == nil {
		file, err = quantmf.AppendSection(file, "feat", names)
	}
	if err == nil {
		err = s.take(file)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Running = false; err != nil {
		s.status.Error = err.Error()
	}
}

// take serves the model in a file, which anyone may have made: UnmarshalModel checks every number.
func (s *server) take(file []byte) error {
	m, err := quantmf.UnmarshalModel(file, quantmf.WithWorkers(1))
	if err != nil {
		return err
	}
	var features []string
	names, _, err := quantmf.Section(file, "feat")
	if err == nil {
		err = json.Unmarshal(names, &features)
	}
	if d, _ := m.Dims(); err == nil && len(features) != d {
		err = fmt.Errorf("%d names of %d features", len(features), d)
	}
	if err == nil {
		s.current.Store(&served{m, features, file})
	}
	return err
}

func (s *server) put(r *http.Request) (any, error) {
	file, err := io.ReadAll(r.Body)
	if err == nil {
		err = s.take(file)
	}
	return "taken", err
}

func (s *server) get(*http.Request) (any, error) {
	if m := s.current.Load(); m != nil {
		return m.file, nil
	}
	return nil, errNoModel
}

// samples reads new samples, their features in the model's order; those that the table lacks are missing.
func (s *server) samples(r *http.Request) (m *served, x quantmf.Mat, names []string, err error) {
	if m = s.current.Load(); m == nil {
		return nil, x, nil, errNoModel
	}
	t, err := table(r)
	if err != nil {
		return nil, x, nil, err
	}
	x = quantmf.NewMat(len(m.features), len(t.Samples))
	for i, name := range m.features {
		row := x.Row(i)
		if at := slices.Index(t.Features, name); at >= 0 {
			err = errors.Join(err, t.Rows.ReadRow(row, at))
			continue
		}
		for j := range row {
			row[j] = math.NaN()
		}
	}
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
	scores, err := m.model.Scores(r.Context(), x)
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
	values, err := m.model.Predict(r.Context(), x)
	var lo, hi quantmf.Mat
	if b, is := m.model.(*quantmf.BQMF); is && err == nil {
		p, wrong := strconv.ParseFloat(cmp.Or(r.URL.Query().Get("p"), "0.9"), 64)
		if err = wrong; err == nil {
			lo, hi, err = b.PredictInterval(r.Context(), x, p)
		}
	}
	if err != nil {
		return nil, err
	}
	out := []cell{}
	for i, feature := range m.features {
		for j, sample := range names {
			if v := x.At(i, j); v == v {
				continue
			}
			c := cell{Feature: feature, Sample: sample, Value: values.At(i, j)}
			if lo.Rows > 0 {
				c.Low, c.High = &lo.Row(i)[j], &hi.Row(i)[j]
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s := newServer(ctx)
	h := &http.Server{Addr: *addr, Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
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
