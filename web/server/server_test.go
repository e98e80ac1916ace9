package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHeaders checks the content types that browsers need to compile and import files, and that the policy
// names no other server.
func TestHeaders(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"engine.wasm", "index.js", "index.html"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"/engine.wasm": "application/wasm",
		"/index.js": "text/javascript", "/": "text/html"} {
		w := httptest.NewRecorder()
		handler(folder).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := w.Header().Get("Content-Type"); w.Code != 200 || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %d, %s", path, w.Code, got)
		}
		csp := w.Header().Get("Content-Security-Policy")
		if csp == "" || strings.Contains(csp, "http") || strings.Contains(csp, "*") ||
			strings.Contains(csp, "unsafe-inline") || strings.Contains(csp, "'unsafe-eval'") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
}
