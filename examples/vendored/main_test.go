package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestVendored: from the vendored folder alone, without a network, two builds in two folders are the same
// bytes, and the program says what this one does, whose bits are those of every platform.
func TestVendored(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	var programs [2][]byte
	for k := range programs {
		dir := filepath.Join(t.TempDir(), "consumer")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		do := func(name string, args ...string) {
			t.Helper()
			c := exec.Command(name, args...)
			c.Dir, c.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "CGO_ENABLED=0", "GOWORK=off")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s %q: %v\n%s", name, args, err, out)
			}
		}
		write("main.go", string(source))
		write("go.mod", "module example.com/consumer\n\ngo 1.25\n\nrequire github.com/quantmf/quantmf "+
			"v0.0.0\n\n"+
			"replace github.com/quantmf/quantmf => ../quantmf\n")
		link := filepath.Join(dir, "..", "quantmf")
		if err := os.Symlink(root, link); err != nil {
			t.Skip(err)
		}
		do("go", "mod", "vendor")
		if err := os.Remove(link); err != nil { // from here on the package is in the vendored folder alone
			t.Fatal(err)
		}
		do("go", "build", "-mod=vendor", "-trimpath", "-o", "program", ".")
		if programs[k], err = os.ReadFile(filepath.Join(dir, "program")); err != nil {
			t.Fatal(err)
		}
		got, err := exec.Command(filepath.Join(dir, "program")).Output()
		var want bytes.Buffer
		if err == nil {
			err = run(&want)
		}
		if err != nil || string(got) != want.String() {
			t.Errorf("the vendored program says %q, want %q (%v)", got, &want, err)
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("two builds differ")
	}
}
