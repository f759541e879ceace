package model

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"urdma/test/lab"
)

var (
	seedFlag = flag.Uint64("seed", 0, "run the program of this seed alone")
	timeFlag = flag.Duration("for", 0, "how long programs run, per wire")
)

// fixedSeeds is how many programs run always.
const fixedSeeds = 60

// build is the directory that make build fills.
func build(t *testing.T) string {
	dir := os.Getenv("URDMA_BUILD")
	if dir == "" {
		dir = "../../build"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "urdmad")); err != nil {
		t.Skip("make build first: ", err)
	}
	return dir
}

// newJudge starts urdmads on a wire and an interpreter on each.
func newJudge(t *testing.T, w lab.Wire) *Judge {
	t.Helper()
	l, err := lab.New(build(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Can(w); err != nil {
		t.Skip(err)
	}
	a, b, err := l.Join(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(l.Dir, "interpreter")
	if out, err := exec.Command("gcc", "-std=c11", "-O2", "-D_GNU_SOURCE", "-o", program, "testdata/interpreter.c",
		"-libverbs").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	j, err := NewJudge(l.Dir, func(side int, socket string) error {
		if err := os.Chmod(socket, 0o777); err != nil {
			return err
		}
		// Shown as iWARP, a queue pair begins in INIT.
		p, err := []*lab.Node{a, b}[side].Exec("env", "URDMA_TRANSPORT=roce", program, socket)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("side %d: %s", side, lab.Tail(p.Output(), 20))
			}
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	j.Stream = slices.Contains([]string{lab.Memif.Name, lab.UDP.Name, lab.TCP.Name}, w.Name)
	return j
}

// check runs a program; one that fails is shrunk and printed.
func check(t *testing.T, j *Judge, p Program, seed uint64, w string) {
	t.Helper()
	begin := time.Now()
	err := j.Run(p)
	if os.Getenv("SLOW") != "" {
		t.Log(w, seed, time.Since(begin))
	}
	var failure *Failure
	if err == nil {
		return
	}
	if !errors.As(err, &failure) {
		t.Fatalf("seed %d: %v\n%s", seed, err, p)
	}
	t.Logf("seed %d:\n%s", seed, failure.Text)
	j.Patience = 3 * time.Second // each step that does not fail any more is quick, and each that does takes this long
	if d := os.Getenv("HUNT"); d != "" {
		os.WriteFile(d+"/"+w+"-"+strconv.FormatUint(seed, 10)+".json", []byte(failure.Program.String()), 0o644)
		return
	}
	short := Shrink(failure.Program, func(q Program) bool {
		var f *Failure
		if !errors.As(j.Run(q), &f) {
			return false
		}
		failure = f
		return true
	})
	t.Fatalf("seed %d fails; a file of testdata/cases makes it a case:\n%s\n%s", seed, failure.Text, short)
}

var wires = []lab.Wire{lab.Loopback, lab.Memif, lab.UDP, lab.TCP, lab.RoCE}

// TestPrograms runs random programs: always the same ones, and others for a while.
func TestPrograms(t *testing.T) {
	limit := *timeFlag
	if limit == 0 {
		limit = time.Second
		if os.Getenv("URDMA_LONG") != "" {
			limit = 2 * time.Minute
		}
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			j := newJudge(t, w)
			if *seedFlag != 0 {
				check(t, j, Generate(*seedFlag), *seedFlag, w.Name)
				return
			}
			for seed := range uint64(fixedSeeds) {
				check(t, j, Generate(seed), seed, w.Name)
			}
			begin := time.Now()
			seed := uint64(begin.UnixNano())
			for ; time.Since(begin) < limit; seed++ {
				check(t, j, Generate(seed), seed, w.Name)
			}
			t.Logf("programs of the seeds %d to %d", uint64(begin.UnixNano()), seed-1)
		})
	}
}

// TestCases runs the programs that once failed.
func TestCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/cases/*.json")
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			j := newJudge(t, w)
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				var p Program
				if err := json.Unmarshal(text, &p); err != nil {
					t.Fatal(file, err)
				}
				if err := j.Run(p); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		})
	}
}
