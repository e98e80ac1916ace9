package command

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam/internal/kit"
	"github.com/quantmf/quantmf/internal/samebits"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// writeMatrix writes x to a file without names of rows and columns.
func writeMatrix(t *testing.T, x quantmf.Mat) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npy")
	file := Must(os.Create(path))(t)
	defer file.Close()
	OK(t, table.Write(file, path, "", nil, nil, x))
	return path
}

// modelIn returns the model in a file, without the sections that the command adds.
func modelIn(t *testing.T, path string) string {
	t.Helper()
	return marshal(t, Must(quantmf.UnmarshalModel(Must(os.ReadFile(path))(t)))(t))
}

func marshal(t *testing.T, m quantmf.Model) string {
	t.Helper()
	return string(Must(m.MarshalBinary())(t))
}

// build builds a command.
func build(t *testing.T, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg)+".exe")
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// port returns a free port of localhost.
func port(t *testing.T) string {
	t.Helper()
	l := Must(net.Listen("tcp", "localhost:0"))(t)
	defer l.Close()
	_, number, err := net.SplitHostPort(l.Addr().String())
	OK(t, err)
	return number
}

// start starts a process that listens on a port, and waits until it does. The process ends with the test;
// ended is closed when it ends.
func start(t *testing.T, port, path string, args ...string) (c *exec.Cmd, ended <-chan struct{}) {
	t.Helper()
	c = exec.Command(path, args...)
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	OK(t, c.Start())
	over := make(chan struct{})
	go func() { c.Wait(); close(over) }()
	t.Cleanup(func() {
		c.Process.Kill()
		<-over
		if t.Failed() {
			t.Logf("%s %s said:\n%s", filepath.Base(path), strings.Join(args, " "), said.String())
		}
	})
	for range 600 {
		if conn, err := net.Dial("tcp", "localhost:"+port); err == nil {
			conn.Close()
			return c, over
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not listen", path)
	return nil, nil
}

// TestProcesses runs driver, job server and workers as processes of their own. It kills the workers at random
// moments of the fit and starts them again. The model has the same bits as on one machine.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs")
	}
	kills := 4
	if os.Getenv("QUANTMF_LONG") != "" {
		kills = 20
	}
	x := kit.LowRank(330, 900)
	file := writeMatrix(t, x)
	want := Must(quantmf.FitNMF(t.Context(), x, 8, quantmf.WithUpdates(quantmf.UpdatesMultiplicative),
		quantmf.WithEpochs(100*kills)))(t)
	program, prism := build(t, "github.com/quantmf/quantmf/beam/cmd/quantmf-beam"),
		build(t, "github.com/apache/beam/sdks/v2/go/cmd/prism")
	jobs, pool := port(t), port(t)
	// Prism's server ends when a job begins while there is no pool. It is started again, as a supervisor of
	// servers does.
	serve := func() <-chan struct{} {
		_, ended := start(t, jobs, prism, "-job_port", jobs, "-serve_http=false", "-log_level", "error")
		return ended
	}
	ended := serve()
	workers, gone := start(t, pool, program, "workers", "-port", pool)

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	model, store := filepath.Join(t.TempDir(), "m.qmf"), filepath.Join(t.TempDir(), "store")
	command := func(words ...string) *exec.Cmd {
		return exec.CommandContext(ctx, program,
			append([]string{"fit", "-retries", "9", "-stall", "5s", "-runner", "universal", "-endpoint",
				"localhost:" + jobs,
				"-environment_type", "EXTERNAL", "-environment_config", "localhost:" + pool, "-o", model},
				words...)...)
	}
	fit := command("-method", "nmf", "-k", "8", "-epochs", fmt.Sprint(100*kills), "-shards", "3", "-rounds",
		"40", "-store", store, file)
	var said strings.Builder
	fit.Stderr = &said
	OK(t, fit.Start())
	done := make(chan error, 1)
	go func() { done <- fit.Wait() }()

	rounds := func() int {
		written := Must(filepath.Glob(filepath.Join(store, "round-??????")))(t)
		return len(written)
	}
	killed, next, r := 0, 5, rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
waiting:
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after %d kills: %v\n%s", killed, err, said.String())
			}
			break waiting
		case <-ended:
			ended = serve()
		case <-time.After(time.Duration(1+r.IntN(30)) * time.Millisecond):
			if at := rounds(); killed < kills && at > next {
				workers.Process.Kill()
				<-gone
				killed, next = killed+1, at+40+r.IntN(40)
				workers, gone = start(t, pool, program, "workers", "-port", pool)
			}
		}
	}
	if killed < kills {
		t.Errorf("the fit was over after %d kills of %d", killed, kills)
	}
	if again := strings.Count(said.String(), "trying again"); again == 0 {
		t.Errorf("no pipeline failed:\n%s", said.String())
	} else {
		t.Logf("%d kills, %d pipelines failed", killed, again)
	}
	if modelIn(t, model) != marshal(t, want) {
		t.Error("the model differs from that of one machine")
	}
	for i, f := range samebits.Fits() {
		shards := fmt.Sprint([]int{8, 3, 2, 1, 2}[i])
		if out, err := command(append(f.Flags, "-shards", shards,
			writeMatrix(t, f.X))...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		data := Must(os.ReadFile(model))(t)
		f.CheckFile(t, "processes of Beam, "+shards+" shards", data)
	}
}
