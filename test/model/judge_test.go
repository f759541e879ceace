package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// wires are the wires on which programs run; on the first, both sides have one urdmad. In each group the messages of
// a side are either one stream, or not.
var (
	wires     = []lab.Wire{lab.Loopback, lab.RoCE, lab.Memif, lab.UDP, lab.TCP}
	inStreams = wires[2:]
)

// fixedSeeds is the number of programs that always run. Only make test-long runs programs of new seeds, because a
// failure may also show a gap in the model.
const fixedSeeds = 12

// providerEnv names an interpreter that uses the machine's own provider of libibverbs, such as the kernel's rxe.
const providerEnv = "URDMA_TEST_INTERPRETER"

// newJudge joins two hosts by a wire and starts an interpreter on each, with more of an environment.
func newJudge(t *testing.T, w lab.Wire, env ...string) *Judge {
	t.Helper()
	a, b := labtest.Join(t, w, nil)
	program := filepath.Join(a.Directory(), "interpreter")
	compile(t, program)
	j := judge(t, a.Directory(), func(side int, socket string) error {
		// A queue pair on a device shown as iWARP begins in INIT.
		p, err := []*lab.Node{a, b}[side].Exec(slices.Concat([]string{"env", "URDMA_TRANSPORT=roce"}, env,
			[]string{program, socket})...)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("side %d: %s", side, lab.Tail(p.Output(), 20))
			}
		})
		return err
	})
	j.Stream = slices.Contains(inStreams, w) || w.SeveralWorkers() && w.Name == lab.Loopback.Name // as over a wire
	j.Overtake = w.Kernel && w.SeveralWorkers()
	return j
}

func compile(t *testing.T, program string) {
	t.Helper()
	programtest.Compile(t, program, "-std=c11", "-O2", "testdata/interpreter.c", "-libverbs")
}

func judge(t *testing.T, directory string, start func(side int, socket string) error) *Judge {
	t.Helper()
	if err := os.Chmod(directory, 0o755); err != nil { // both sides need access
		t.Fatal(err)
	}
	j, err := NewJudge(directory, func(side int, socket string) error {
		return errors.Join(os.Chmod(socket, 0o777), start(side, socket))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

// check runs the program of a seed; if it fails, check shortens and prints it.
func check(t *testing.T, j *Judge, generate func(uint64) Program, seed uint64) {
	t.Helper()
	undecided := j.Undecided
	err := j.Run(generate(seed))
	if j.Undecided > undecided {
		t.Logf("URDMA_SEED=%d was not judged to its end", seed)
	}
	var failure *Failure
	if err == nil {
		return
	}
	if !errors.As(err, &failure) {
		t.Fatalf("URDMA_SEED=%d: %v\n%s", seed, err, generate(seed))
	}
	t.Logf("URDMA_SEED=%d fails:\n%s", seed, failure.Text)
	j.Patience = 3 * time.Second // a program that fails takes this long
	short := Shrink(failure.Program, func(q Program) bool {
		var f *Failure
		if !errors.As(j.Run(q), &f) {
			return false
		}
		failure = f
		return true
	})
	t.Fatalf("URDMA_SEED=%d, shorter; a file of testdata/cases makes it a case:\n%s\n%s", seed, failure.Text, short)
}

// programs runs the programs of URDMA_SEED, n or n-m. Otherwise it runs those of the fixed seeds, and in make
// test-long those of new seeds for a while.
func programs(t *testing.T, j *Judge, generate func(uint64) Program) {
	t.Helper()
	j.Undecided = 0
	if of := os.Getenv("URDMA_SEED"); of != "" {
		var from, to uint64
		if n, _ := fmt.Sscanf(of, "%d-%d", &from, &to); n < 2 {
			to = from
		}
		for ; from <= to; from++ {
			check(t, j, generate, from)
		}
		return
	}
	for seed := range uint64(fixedSeeds) {
		check(t, j, generate, seed)
	}
	if j.Undecided > 0 && !j.Overtake { // else there are more states, see most
		t.Errorf("%d of the fixed programs were not judged to their end", j.Undecided)
	}
	if os.Getenv("URDMA_LONG") == "" {
		return
	}
	const limit = 3 * time.Minute
	begin := time.Now()
	first := uint64(begin.Unix()) * 1000
	seed := first
	for ; time.Since(begin) < limit; seed++ {
		check(t, j, generate, seed)
	}
	t.Logf("programs of seeds 0 to %d, and URDMA_SEED=%d-%d", fixedSeeds-1, first, seed-1)
}

func TestPrograms(t *testing.T) {
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			programs(t, newJudge(t, w), Generate)
		})
	}
}

// TestDatagramPrograms runs programs of queue pairs of type UD, whose packets are the same on ports udp and tcp.
func TestDatagramPrograms(t *testing.T) {
	for _, w := range wires[:4] {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			programs(t, newJudge(t, w), GenerateDatagrams)
		})
	}
}

// TestXRCPrograms runs programs of connections of XRC.
func TestXRCPrograms(t *testing.T) {
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			programs(t, newJudge(t, w), GenerateXRC)
		})
	}
}

// TestOnDemandPrograms runs programs whose memory is paged on demand, except where atomics go. Nothing else may differ.
func TestOnDemandPrograms(t *testing.T) {
	a, _ := labtest.Join(t, lab.Loopback, nil)
	if out, err := a.Run(lab.Patience, "ibv_devinfo", "-v"); err != nil || !strings.Contains(out, "ODP_SUPPORT") {
		t.Skipf("no on-demand paging: %v", err)
	}
	for _, w := range []lab.Wire{lab.Loopback, lab.RoCE, lab.UDP} {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			programs(t, newJudge(t, w, "INTERPRETER_ON_DEMAND=1"), Generate)
		})
	}
}

// TestCases runs the programs that have failed in the past.
func TestCases(t *testing.T) {
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			j := newJudge(t, w)
			files, _ := filepath.Glob("testdata/cases/*.json")
			for _, file := range files {
				if err := runCase(j, file); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
			if j.Undecided > 0 {
				t.Errorf("%d of the cases were not judged to their end", j.Undecided)
			}
		})
	}
}

func runCase(j *Judge, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p Program
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	return j.Run(p)
}

// TestProvider runs programs on the machine's own provider, if one is named.
func TestProvider(t *testing.T) {
	program := os.Getenv(providerEnv)
	if program == "" {
		t.Skip(providerEnv + " names no interpreter of another provider")
	}
	j := judge(t, t.TempDir(), func(_ int, socket string) error {
		c := exec.Command(program, socket)
		c.Stderr = os.Stderr
		t.Cleanup(func() { _ = c.Wait() }) // it ends with its socket
		return c.Start()
	})
	j.RXE = true
	t.Run("connected", func(t *testing.T) { programs(t, j, Generate) })
	t.Run("datagrams", func(t *testing.T) { programs(t, j, GenerateDatagrams) })
	t.Run("XRC", func(t *testing.T) {
		if !j.HasXRC() {
			t.Skip("the device has no XRC")
		}
		programs(t, j, GenerateXRC)
	})
}
