// Server serves web/dist on this machine, with the headers that docs/web.md asks of any server of the
// page.
//
//	go run ./server [-at 127.0.0.1:8080] [FOLDER]
//
// With port 0 it takes a free port. The first line of its output is the address.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// policy lets the page fetch its own files and nothing else, and run WebAssembly.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src " +
	"'self'; " +
	"style-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// handler serves the folder.
func handler(folder string) http.Handler {
	files := http.FileServer(http.Dir(folder))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}

func main() {
	at := flag.String("at", "127.0.0.1:8080", "address")
	flag.Parse()
	folder := "dist"
	if flag.NArg() > 0 {
		folder = flag.Arg(0)
	}
	listener, err := net.Listen("tcp", *at)
	if err == nil {
		fmt.Printf("http://%s\n", listener.Addr())
		server := http.Server{Handler: handler(folder), ReadHeaderTimeout: time.Minute}
		err = server.Serve(listener)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
