//go:build !js

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// harness runs what the server serves as the page does, in Node.js: it loads the script, starts the module,
// and calls odd with a table and with what is none.
const harness = `
const fs = require("fs");
const dir = process.argv[2];
require(dir + "/wasm_exec.js");
const go = new Go();
WebAssembly.instantiate(fs.readFileSync(dir + "/main.wasm"), go.importObject).then(({ instance }) => {
  go.run(instance);
  console.log(JSON.stringify([odd(fs.readFileSync(dir + "/table.csv", "utf8")), odd("no table"), odd(7)]));
  process.exit(0);
});
`

// TestPage: the page is served with its module, which finds the odd host of a pasted table, and says what is
// wrong with another text.
func TestPage(t *testing.T) {
	module, script, err := build()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(files(module, script))
	defer server.Close()
	dir := t.TempDir()
	for _, name := range []string{"", "main.wasm", "wasm_exec.js"} {
		r, err := server.Client().Get(server.URL + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 || len(data) == 0 {
			t.Fatalf("%q: %d, %v", name, r.StatusCode, err)
		}
		if name == "" && !strings.Contains(string(data), "main.wasm") {
			t.Error("the page does not load the module")
		}
		if name == "main.wasm" && r.Header.Get("Content-Type") != "application/wasm" {
			t.Error("browsers compile no module of another type while it comes")
		}
		if name != "" {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	table := "host,cpu,load,requests,heat\n"
	for j := range 40 {
		l := 1 + float64(j*7%40)/10
		cpu := 20 * l
		if j == 23 { // busy, and its processor is not
			cpu = 25
		}
		table += fmt.Sprintf("h%d,%g,%g,%g,%g\n", j, cpu, l, 30*l*l, 30+5*l)
	}
	for name, text := range map[string]string{"table.csv": table, "harness.js": harness} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node: the page was built and served, not run")
	}
	out, err := exec.Command(node, filepath.Join(dir, "harness.js"), dir).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var answers [3]json.RawMessage
	var scored []struct {
		Name  string
		Score float64
	}
	if err = json.Unmarshal(out, &answers); err == nil {
		err = json.Unmarshal(answers[0], &scored)
	}
	if err != nil || len(scored) != 40 {
		t.Fatalf("%v: %s", err, out)
	}
	most := scored[0]
	for _, s := range scored {
		if s.Score > most.Score {
			most = s
		}
	}
	if most.Name != "h23" || !strings.Contains(string(answers[1]), `"error"`) ||
		!strings.Contains(string(answers[2]), `"error"`) {
		t.Errorf("the oddest is %v; %s, %s", most, answers[1], answers[2])
	}
}
