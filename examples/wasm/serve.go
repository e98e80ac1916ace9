//go:build !js

package main

import (
	_ "embed"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed index.html
var page []byte

// build returns the module of the page, and the script of the Go distribution that runs it.
func build() (module, script []byte, err error) {
	dir, err := os.MkdirTemp("", "wasm")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "main.wasm")
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out,
		"github.com/quantmf/quantmf/examples/wasm")
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=")
	if said, err := c.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("go build: %w: %s", err, said)
	}
	if module, err = os.ReadFile(out); err != nil {
		return nil, nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, nil, err
	}
	script, err = os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	return module, script, err
}

// files serves the page, the module and the script.
func files(module, script []byte) http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range map[string]struct {
		kind string
		data []byte
	}{"GET /{$}": {"text/html; charset=utf-8", page}, "GET /main.wasm": {"application/wasm", module},
		"GET /wasm_exec.js": {"text/javascript", script}} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", f.kind)
			_, _ = w.Write(f.data) // an error is a browser that has gone
		})
	}
	return mux
}

func main() {
	module, script, err := build()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://localhost:8080")
	server := http.Server{Addr: "localhost:8080", Handler: files(module, script),
		ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}
