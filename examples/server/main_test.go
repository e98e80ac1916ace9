package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
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

// TestServer fits, scores and fills by 64 clients at once, among them hostile and impatient ones: nothing
// panics, no status is 5xx, and every goroutine ends with the server, a fit under way included.
func TestServer(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	s := newServer(ctx)
	h := httptest.NewServer(s.routes())
	do := func(ctx context.Context, method, path, body string) (int, []byte) {
		r, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, nil
		}
		a, err := h.Client().Do(r)
		if err != nil {
			return 0, nil // a client that gave up
		}
		defer a.Body.Close()
		data, _ := io.ReadAll(a.Body)
		if a.StatusCode >= 500 {
			t.Errorf("%s %s: %d %s", method, path, a.StatusCode, data)
		}
		return a.StatusCode, data
	}
	if code, _ := do(ctx, "POST", "/score", metrics(3)); code != http.StatusNotFound {
		t.Errorf("a score without a model: %d", code)
	}
	if code, data := do(ctx, "POST", "/fit?rank=2&samples=rows", metrics(30)); code != http.StatusOK {
		t.Fatalf("fit: %d %s", code, data)
	}
	for s.current.Load() == nil {
		time.Sleep(time.Millisecond)
		if _, data := do(ctx, "GET", "/status", ""); bytes.Contains(data, []byte(`"Error":"q`)) {
			t.Fatalf("%s", data)
		}
	}
	_, file := do(ctx, "GET", "/model", "")
	forged := bytes.Clone(file)
	forged[len(forged)/2] ^= 1
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
			case 4:
				for _, body := range []string{"", "{}", "a,b\n1", strings.Repeat("9", 1<<20),
					"host,cpu\nh,NaN\n"} {
					code, _ := do(ctx, "POST", "/score?samples=rows", body)
					if code != http.StatusBadRequest {
						t.Errorf("%.20q: %d", body, code)
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
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}
