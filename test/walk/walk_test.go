package walk

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/test/walk/record"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

var update = flag.Bool("update", false, "write testdata anew")

// inside tells the test that it runs with the overlay: where to write the ways to.
const inside = "URDMA_WALK_INTO"

// TestWalks: the ways of a message are those of testdata.
func TestWalks(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("../../.ci/go", "test", "-overlay", overlay(t), "-run", "TestInside", "-count", "1", ".")
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ways, err := filepath.Glob(dir + "/*.txt")
	if err != nil || len(ways) != 2*len(wires) {
		t.Fatalf("%d ways, expected %d: %v", len(ways), 2*len(wires), err)
	}
	for _, way := range ways {
		got, err := os.ReadFile(way)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", filepath.Base(way))
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, _ := os.ReadFile(golden); string(want) != string(got) {
			t.Errorf("%s differs (go test ./test/walk -update writes it):\n%s", golden, got)
		}
	}
}

var wires = map[string]enginetest.Options{
	"trp":    {},
	"rocev2": {RoCE: true},
	"tcp":    {TCP: true},
}

// TestInside writes the ways; TestWalks runs it.
func TestInside(t *testing.T) {
	dir := os.Getenv(inside)
	if dir == "" {
		t.Skip("TestWalks runs it")
	}
	if err := enginetest.SetUpLo(); err != nil {
		t.Fatal(err)
	}
	for name, o := range wires {
		t.Run(name, func(t *testing.T) {
			o.NoCapture, o.Seed = true, 1
			post, arrival := message(t, o)
			for direction, steps := range map[string][]record.Step{"post": post, "receive": arrival} {
				if err := os.WriteFile(filepath.Join(dir, name+"-"+direction+".txt"), []byte(text(steps)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// message has A send B a message of one packet, over a connection that is in use, and
// returns what A's engine does until the packet has left, and what B's does with it.
func message(t *testing.T, o enginetest.Options) (post, arrival []record.Step) {
	w := enginetest.New(t, o)
	a, b := w.A.NewClient().NewQP(nil), w.B.NewClient().NewQP(nil)
	from, to := a.Client.Register(4096, abi.AccessLocalWrite), b.Client.Register(4096, abi.AccessLocalWrite)
	enginetest.Join(a, b, 1)
	for range 3 {
		b.PostRecv(1, to.SGE(0, 64))
		a.Post(enginetest.Send(1), from.SGE(0, 64))
		b.Recv.Completions(1)
		a.Send.Completions(1)
	}
	b.PostRecv(2, to.SGE(0, 64))
	w.Pass(10 * time.Millisecond)
	a.Post(enginetest.Send(2), from.SGE(0, 64))
	post = record.During(func() { w.A.Engine.Turn(w.Now()) })
	var e []abi.CQE
	w.Until("the message", time.Second, func() bool {
		w.Net.Advance(int64(w.Now()) + 500)
		arrival = record.During(func() { w.B.Engine.Turn(w.Now()) })
		e = b.Recv.Poll()
		return len(e) > 0
	})
	return post, arrival
}

// node is a visit of a package, and the visits that it makes.
type node struct {
	record.Step
	visits []*node
}

// text is the way, a line for each visit of a package, indented by who visits it.
func text(steps []record.Step) string {
	top := &node{}
	stack := []*node{top}
	for _, s := range steps {
		if s.Left {
			stack = stack[:len(stack)-1]
			continue
		}
		caller := stack[len(stack)-1]
		if caller.Package == s.Package {
			stack = append(stack, caller)
			continue
		}
		n := &node{Step: s}
		caller.visits = append(caller.visits, n)
		stack = append(stack, n)
	}
	var b strings.Builder
	packages, returns := map[string]bool{}, 0
	var write func(n *node, depth int)
	write = func(n *node, depth int) {
		for i, v := range n.visits {
			packages[v.Package] = true
			if i > 0 && depth > 0 {
				returns++
			}
			fmt.Fprintf(&b, "%s%s/%s %s\n", strings.Repeat("  ", depth), v.Package, v.File, v.Function)
			write(v, depth+1)
		}
	}
	write(top, 0)
	return fmt.Sprintf("%d packages, %d returns\n%s", len(packages), returns, &b)
}
