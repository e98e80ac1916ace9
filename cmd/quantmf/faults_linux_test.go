package main

// This file tests what befalls a process: SIGKILL while it keeps its state, a second
// interrupt, a disk that is full, a folder that cannot be written. QUANTMF_LONG makes it a
// hundred kills.

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// commandOf is this test as a quantmf of its own.
func commandOf(t *testing.T, line string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self := Must(os.Executable())(t)
	c := exec.Command(self, strings.Fields(line)...)
	c.Env = append(os.Environ(), "QUANTMF_AS_COMMAND=1")
	var said bytes.Buffer
	c.Stderr = &said
	return c, &said
}

// TestInterruptedWriting: a command that only writes ends at an interrupt, and leaves nothing
// behind.
func TestInterruptedWriting(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	x := quantmf.NewMat(1500, 800)
	for i := range x.Data {
		x.Data[i] = math.Sqrt(float64(i))
	}
	writeTable(t, "x.npy", x)
	for attempt := 0; ; attempt++ {
		p, said := commandOf(t, "convert x.npy o.tsv.gz")
		ended := start(t, p)
		waitFor(t, ended, "output begun", func() bool {
			at, _ := filepath.Glob(".quantmf-*.tmp")
			if len(at) == 0 {
				return false
			}
			info, err := os.Stat(at[0])
			return err == nil && info.Size() > 0
		})
		p.Process.Signal(os.Interrupt)
		err := <-ended
		if err == nil && attempt < 20 { // on a busy machine it may be finished before it is interrupted
			os.Remove("o.tsv.gz")
			continue
		}
		if p.ProcessState.ExitCode() != cli.Interrupted {
			t.Errorf("%v: %s", err, said)
		}
		break
	}
	Equal(t, files(t, dir), "x.npy", "files")
}

// TestKilled: fits that are killed at random moments while they keep their state go on to
// the bits of one that was left alone. So do comparisons.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills and resumes again and again")
	}
	kills := 2
	if os.Getenv("QUANTMF_LONG") != "" {
		kills = 100
	}
	dir := folder(t)
	src := rand.New(rand.NewPCG(uint64(kills), 4))
	for _, c := range []struct{ args, out string }{
		{"fit -method qmf -compare none -k 2 -epochs 30 -progress none -o OUT matrix.tsv", "m.qmf"},
		{"fit -compare none -method nmf -k 3 -epochs 200 -progress none -o OUT matrix.tsv", "n.qmf"},
		{"rank -k 1,2 -repeats 3 -epochs 20 -progress none -plot OUT matrix.tsv", "r.svg"},
	} {
		line := strings.Replace(c.args, "OUT", c.out, 1) + " -checkpoint state"
		quiet(t, 0, strings.Replace(c.args, "OUT", "whole", 1))
		want := textOf(t, "whole")
		began := time.Now()
		alone, said := commandOf(t, line)
		if err := alone.Run(); err != nil {
			t.Fatal(err, said)
		}
		takes := time.Since(began)
		for _, name := range []string{c.out, "state"} {
			os.RemoveAll(name)
		}
		killed, finished, states := 0, 0, 0
		for whole := false; killed < kills || !whole; { // ends with a run that was left alone
			p, said := commandOf(t, line+" -resume")
			OK(t, p.Start())
			if killed < kills {
				time.Sleep(time.Duration(src.Int64N(int64(takes)*3/4) + int64(5*time.Millisecond)))
				p.Process.Kill()
			}
			err := p.Wait()
			whole = err == nil
			switch {
			case whole:
				if textOf(t, c.out) != want {
					t.Fatalf("%s: after %d kills another result", c.args, killed)
				}
				finished++
				os.Remove(c.out)
				os.RemoveAll("state")
				left, _ := filepath.Glob(".quantmf-*.tmp") // of those that were killed
				for _, path := range left {
					os.Remove(path)
				}
				if left := files(t, dir); left != "whole" {
					t.Fatalf("%s: files left: %s", c.args, left)
				}
			case p.ProcessState.ExitCode() == -1: // by the signal
				killed++
				if _, err := os.Stat("state"); err == nil {
					states++
				}
			default:
				t.Fatalf("%s: %v: %s", c.args, err, said)
			}
		}
		t.Logf("%s: %d kills, %d of them with a state, %d times to the end", c.args, killed, states, finished)
		for _, name := range []string{"whole", "state", c.out} {
			os.RemoveAll(name)
		}
	}
}

// start starts a command, and returns what has its error once it has ended. It ends with the test.
func start(t *testing.T, c *exec.Cmd) <-chan error {
	t.Helper()
	OK(t, c.Start())
	ended := make(chan error, 1)
	over := make(chan bool)
	go func() { ended <- c.Wait(); close(over) }()
	t.Cleanup(func() { c.Process.Kill(); <-over })
	return ended
}

// waitFor returns when it is so. A command that neither makes it so nor ends is a hang, and ends with
// the test's timeout.
func waitFor(t *testing.T, ended <-chan error, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case err := <-ended:
			t.Fatalf("ended with no %s: %v", what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestSecondInterrupt: a process that does not end at the first, because it writes to a pipe
// that nobody reads, ends at the second, and takes its temporary files away.
func TestSecondInterrupt(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	dir := folder(t)
	if err := syscall.Mkfifo("pipe.tsv", 0o666); err != nil {
		t.Skip(err)
	}
	pipe, err := syscall.Open("pipe.tsv", syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe)
	for err == nil { // until it is full
		_, err = syscall.Write(pipe, make([]byte, 512))
	}
	p, said := commandOf(t, "fit -k 2 -epochs 2 -progress none -u pipe.tsv -o m.qmf -v V.tsv "+
		"-checkpoint state matrix.tsv")
	p.Env = append(p.Env, "QUANTMF_AS_COMMAND=heard")
	ended := start(t, p)
	waitFor(t, ended, "pipe open", func() bool {
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Process.Pid))
		return slices.ContainsFunc(open,
			func(link string) bool { to, _ := os.Readlink(link); return filepath.Base(to) == "pipe.tsv" })
	})
	written, _ := filepath.Glob(".quantmf-*.tmp")
	if len(written) != 2 { // of the model and of V
		t.Fatalf("files: %s", files(t, dir))
	}
	for _, at := range written {
		if info, err := os.Stat(at); err != nil || info.Size() == 0 {
			t.Fatalf("%s is not written: %v", at, err)
		}
	}
	p.Process.Signal(os.Interrupt)
	waitFor(t, ended, "interrupt heard", func() bool { _, err := os.Stat("heard"); return err == nil })
	select {
	case err := <-ended:
		t.Fatalf("ended at the first: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	p.Process.Signal(os.Interrupt)
	if err = <-ended; p.ProcessState.ExitCode() != cli.Interrupted {
		t.Errorf("%v: %s", err, said)
	}
	Equal(t, files(t, dir), "heard pipe.tsv state", "files")
}

// mounted mounts a file system in memory, or skips the test.
func mounted(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skip("nothing may be mounted here: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	return dir
}

// TestDiskFull: what does not fit on the disk fails with its reason; files that were there
// stay as they were, and nothing is left behind.
func TestDiskFull(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	folder(t)
	matrix := Must(filepath.Abs("matrix.tsv"))(t)
	dir := mounted(t, "size=16k")
	t.Chdir(dir)
	writeText(t, "m.qmf", "of before")
	full := regexp.MustCompile(`cannot write \S+: .*no space left on device`)
	for _, args := range []string{
		"fit -compare none -k 2 -epochs 2000 -method nmf -o m.qmf " + matrix, // 2001 losses
		"fit -method qmf -compare none -k 2 -epochs 2 -u U.tsv -report m.qmf " + matrix,
		"fit -compare none -k 2 -epochs 2000 -method nmf -checkpoint state " + matrix,
		"rank -k 1,2,3 -repeats 4 -epochs 300 -checkpoint done " + matrix,
	} {
		if _, e := quiet(t, cli.Failed, args); !full.MatchString(e) {
			t.Errorf("%s: %s", args, e)
		}
		b, err := os.ReadFile("m.qmf")
		if got := strings.ReplaceAll(files(t, dir), "done ", ""); got != "m.qmf" ||
			string(b) != "of before" || err != nil {
			t.Errorf("%s: files: %s, %q %v", args, got, b, err)
		}
		os.RemoveAll("done") // of rank, to go on from
	}
}

// TestReadOnlyFolder: nothing can be written, and that is said before any work.
func TestReadOnlyFolder(t *testing.T) {
	folder(t)
	matrix, _ := filepath.Abs("matrix.tsv")
	dir := mounted(t, "size=64k")
	t.Chdir(dir)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	for _, args := range []string{"fit -epochs 10000000 -o m.qmf MATRIX",
		"fit -epochs 10000000 -checkpoint state MATRIX", "rank -epochs 10000000 -plot p.svg MATRIX",
		"rank -epochs 10000000 -checkpoint done MATRIX", "impute MATRIX -o x.tsv -epochs 10000000",
		"convert MATRIX x.npy"} {
		says(t, cli.Failed, strings.Replace(args, "MATRIX", matrix, 1), "cannot write",
			"read-only file system")
	}
	if got := files(t, dir); got != "" {
		t.Error(got)
	}
}
