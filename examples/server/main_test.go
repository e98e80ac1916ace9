package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quantmf/quantmf/rowfile"
)

// metrics is a table of hosts (rows) and metrics, in the last host one that has gone wild, and a hole.
func metrics(hosts int) string {
	var b strings.Builder
	b.WriteString("host,cpu,disk,net,load,temp\n")
	for j := range hosts {
		w := 1 + math.Sin(float64(j))
		fmt.Fprintf(&b, "h%d", j)
		for i := range 5 {
			switch v := float64(i+1) + w*float64(5-i) + 0.05*math.Sin(float64(i*j)); {
			case j == hosts-1 && i == 1:
				fmt.Fprintf(&b, ",%g", 90.0)
			case j == 2 && i == 3:
				b.WriteString(",")
			default:
				fmt.Fprintf(&b, ",%g", v)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// records is the same table in JSON, the hole null.
func records(hosts int) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimSpace(metrics(hosts)), "\n")
	names := strings.Split(lines[0], ",")
	for j, line := range lines[1:] {
		b.WriteString(map[bool]string{true: "[", false: ",\n"}[j == 0])
		for i, v := range strings.Split(line, ",") {
			switch {
			case i == 0:
				fmt.Fprintf(&b, "{%q: %q", names[0], v)
			case v == "":
				fmt.Fprintf(&b, ", %q: null", names[i])
			default:
				fmt.Fprintf(&b, ", %q: %s", names[i], v)
			}
		}
		b.WriteString("}")
	}
	return b.String() + "]"
}

// packed is so many zeros, compressed.
func packed(t *testing.T, bytesOf int) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, strings.Repeat("0", bytesOf)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// ask sends a request, and returns the status and the body of the answer; 0 where there is none. A status of
// 5xx is an error.
func ask(ctx context.Context, t *testing.T, c *http.Client, method, url, body string) (int, []byte) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	a, err := c.Do(r)
	if err != nil {
		return 0, nil // a client that gave up, or a server that has
	}
	defer a.Body.Close()
	data, _ := io.ReadAll(a.Body)
	if a.StatusCode >= 500 {
		t.Errorf("%s %s: %d %s", method, url, a.StatusCode, data)
	}
	return a.StatusCode, data
}

// live is the memory in use.
func live() uint64 {
	runtime.GC()
	runtime.GC() // of what pools kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestServer fits, scores and fills by 64 clients at once, among them hostile and impatient ones: nothing
// panics, no status is 5xx, and every goroutine ends with the server, a fit under way included, as does its
// memory.
func TestServer(t *testing.T) {
	before, memory := runtime.NumGoroutine(), live()
	ctx, stop := context.WithCancel(t.Context())
	s := &server{ctx: ctx, slots: make(chan struct{}, atOnce)}
	h := httptest.NewServer(s.routes())
	do := func(ctx context.Context, method, path, body string) (int, []byte) {
		return ask(ctx, t, h.Client(), method, h.URL+path, body)
	}
	if code, _ := do(ctx, "POST", "/score", metrics(3)); code != http.StatusNotFound {
		t.Errorf("a score without a model: %d", code)
	}
	if code, data := do(ctx, "POST", "/fit?rank=2&samples=rows", records(30)); code != http.StatusOK {
		t.Fatalf("fit: %d %s", code, data)
	}
	for s.current.Load() == nil {
		time.Sleep(time.Millisecond)
		if _, data := do(ctx, "GET", "/status", ""); bytes.Contains(data, []byte(`"Error":"q`)) {
			t.Fatalf("%s", data)
		}
	}
	_, file := do(ctx, "GET", "/model", "")
	if m, err := rowfile.UnmarshalModel(file); err != nil || strings.Join(m.Features, " ") !=
		"cpu disk net load temp" {
		t.Errorf("the model file: %+v, %v", m, err)
	}
	forged := bytes.Clone(file)
	forged[len(forged)/2] ^= 1
	huge := "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, " +
		"99999999), }"
	huge += strings.Repeat(" ", 128-len(huge)-1) + "\n"
	hostile := []string{"", "{}", "a,b\n1", strings.Repeat("9", 1<<20), huge,
		"%%MatrixMarket matrix coordinate real general\n2000000000 2000000000 1\n1 1 1\n",
		"[{" + strings.Repeat(`"a":[`, 1<<16), `[{"a": 1e999}]`, "PK\x03\x04" + strings.Repeat("x", 100),
		string(file)}
	var clients sync.WaitGroup
	for client := range 64 {
		clients.Go(func() {
			short, cancel := context.WithTimeout(ctx, time.Duration(client%8)*time.Millisecond)
			defer cancel()
			switch client % 8 {
			case 0:
				var out []scored
				if code, data := do(ctx, "POST", "/score?samples=rows", metrics(20)); code != http.StatusOK ||
					json.Unmarshal(data, &out) != nil || len(out) != 20 || out[0].Sample != "h19" {
					t.Errorf("score: %d %s", code, data)
				}
			case 1:
				var out []cell
				code, data := do(ctx, "POST", "/impute?samples=rows&p=0.8", metrics(20))
				if err := json.Unmarshal(data, &out); code != http.StatusOK || err != nil || len(out) != 1 ||
					out[0].Low == nil || !(*out[0].Low <= out[0].Value && out[0].Value <= *out[0].High) {
					t.Errorf("impute: %d %s", code, data)
				}
			case 2:
				if code, _ := do(ctx, "PUT", "/model", string(forged)); code != http.StatusBadRequest {
					t.Errorf("a forged model: %d", code)
				}
			case 3:
				do(ctx, "PUT", "/model", string(file))
				for _, body := range hostile[:len(hostile)-1] {
					if code, _ := do(ctx, "PUT", "/model", body); code != http.StatusBadRequest {
						t.Errorf("%.20q as a model: %d", body, code)
					}
				}
			case 4:
				if client == 4 { // it takes a second
					hostile := packed(t, 1<<26)
					if code, _ := do(ctx, "POST", "/score", hostile); code != http.StatusBadRequest {
						t.Errorf("64 megabytes of zeros: %d", code)
					}
				}
				for _, body := range hostile {
					for _, path := range []string{"/score?samples=rows", "/fit?samples=rows", "/impute"} {
						if code, _ := do(ctx, "POST", path, body); code != http.StatusBadRequest {
							t.Errorf("%.20q to %s: %d", body, path, code)
						}
					}
				}
			case 5:
				do(ctx, "POST", "/fit?rank=-3&samples=rows", metrics(9))
				do(ctx, "POST", "/fit?method=nmf&rank=999999999&samples=rows", metrics(9))
			default:
				do(short, "POST", "/score?samples=rows", metrics(500))
			}
		})
	}
	clients.Wait()
	do(ctx, "POST", "/fit?rank=3&samples=rows", metrics(4000)) // it is under way when the server ends
	stop()
	h.Close()
	s.fits.Wait()
	h.Client().CloseIdleConnections()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines before, %d after", before, now)
	}
	// the test's own bodies are a few megabytes
	if now := live(); now > memory+16<<20 {
		t.Errorf("%d bytes in use before, %d after", memory, now)
	}
}

// TestMain runs the server where TestTerminated asks this program to.
func TestMain(m *testing.M) {
	if addr := os.Getenv("EXAMPLE_SERVER"); addr != "" {
		os.Args = []string{"server", "-addr", addr}
		main()
		return
	}
	os.Exit(m.Run())
}

// TestTerminated: a server that is told to end while it fits and is asked ends in good order, with all that
// it has begun.
func TestTerminated(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	var said bytes.Buffer
	c := exec.Command(os.Args[0])
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), "EXAMPLE_SERVER="+addr), &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	do := func(method, path, body string) string {
		_, data := ask(t.Context(), t, http.DefaultClient, method, "http://"+addr+path, body)
		return string(data)
	}
	for do("GET", "/status", "") == "" { // not listening yet
		select {
		case err := <-ended:
			t.Fatalf("%v: %s", err, &said)
		case <-time.After(5 * time.Millisecond):
		}
	}
	do("POST", "/fit?samples=rows&method=qmf&rank=5", metrics(40000))
	for !strings.Contains(do("GET", "/status", ""), `"Done"`) {
		time.Sleep(time.Millisecond)
	}
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for do("GET", "/metrics", "") != "" {
				do("POST", "/score?samples=rows", metrics(50))
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	if strings.Contains(do("GET", "/status", ""), `"Done":1}`) {
		t.Error("the fit has ended before the server is told to")
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || strings.Contains(said.String(), "panic") ||
		strings.Contains(said.String(),
			"DATA RACE") {
		t.Errorf("%v: %s", err, &said)
	}
	clients.Wait()
	http.DefaultClient.CloseIdleConnections()
}
