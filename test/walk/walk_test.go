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

var update = flag.Bool("update", false, "write docs/design/walks.md anew")

// inside is set if the test runs with the overlay: the file for the paths.
const inside = "URDMA_WALK_INTO"

// page has the paths.
const page = root + "/docs/design/walks.md"

const head = `# The path of a message
Each block below shows the path of a message of 64 bytes over a connection that is in use. A line is a visit of a
package of the core, indented below its caller. The first line of a block counts packages, and returns from one package
to another, between the ends of the path: ports, sockets, rings, memory look-ups, timers. After "in all" it counts the
whole path. Left out are formats, clocks, rings, and functions that only return an expression.
This page is written by ` + "`go test ./test/walk -update`" + `.
`

// TestWalks: the paths of a message are as on the page.
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
	got := head
	for _, w := range wires {
		for _, direction := range directions {
			way, err := os.ReadFile(filepath.Join(dir, w.name+" "+direction))
			if err != nil {
				t.Fatal(err)
			}
			checkBounds(t, w.name+" "+direction, string(way))
			got += fmt.Sprintf("\n## %s, %s\n```\n%s```\n", w.name, direction, way)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, _ := os.ReadFile(page); string(want) != got {
		t.Errorf("docs/design/walks.md differs (go test ./test/walk -update writes it):\n%s", got)
	}
}

func checkBounds(t *testing.T, name, way string) {
	packages, returns := 0, 0
	_, err := fmt.Sscanf(way, "%d packages, %d returns", &packages, &returns)
	if err != nil || packages > mostPackages || returns > mostReturns {
		t.Errorf("%s: %d packages and %d returns, at most %d and %d: %v", name, packages, returns, mostPackages, mostReturns,
			err)
	}
}

// Maxima for a path between its ends.
const (
	mostPackages = 9
	mostReturns  = 5
)

var wires = []struct {
	name string
	enginetest.Options
}{{"TRP", enginetest.Options{}}, {"TCP", enginetest.Options{TCP: true}}, {"RoCEv2", enginetest.Options{RoCE: true}}}

var directions = []string{"from a post to the wire", "from the wire to a completion"}

// TestInside writes the paths; TestWalks runs it.
func TestInside(t *testing.T) {
	dir := os.Getenv(inside)
	if dir == "" {
		t.Skip("TestWalks runs it")
	}
	if err := enginetest.SetUpLo(); err != nil {
		t.Fatal(err)
	}
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			w.NoCapture, w.Seed = true, 1
			post, arrival := message(t, w.Options)
			for i, steps := range [][]record.Step{post, arrival} {
				if err := os.WriteFile(filepath.Join(dir, w.name+" "+directions[i]), []byte(text(steps)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// message lets A send a message of one packet to B, over a connection that is in use. It returns the steps of A's
// engine until the packet has left, and those of B's engine that handle it.
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

// aside are packages that don't count for a path: clocks, rings, values.
var aside = map[string]bool{"clock": true, "due": true, "events": true, "fault": true, "mailbox": true, "places": true,
	"ring": true}

// ends are the ends of a path: a port or socket receives or sends, a ring is written, memory is looked up, a timer is
// set.
var ends = map[string]bool{"netif Poll": true, "netif Alloc": true, "netif Send": true, "mpa readable": true,
	"mpa receive": true, "mpa send": true,
	"ring Push": true, "ring PublishCons": true, "mem Lookup": true, "clock Set": true}

// node is a visit of a package, with the visits that it makes.
type node struct {
	record.Step
	visits []*node
}

// text returns the path as text: its counts, and a line for each visit of a package, indented below its caller.
func text(steps []record.Step) string {
	packages, returns := between(steps)
	all := map[string]bool{}
	var b strings.Builder
	visits := write(&b, tree(steps), 0, all)
	return fmt.Sprintf("%d packages, %d returns; in all %d packages, %d visits\n%s", packages, returns, len(all), visits,
		&b)
}

func tree(steps []record.Step) *node {
	top := &node{}
	stack := []*node{top}
	for _, s := range steps {
		if aside[s.Package] {
			continue
		}
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
	return top
}

// write writes the visits below a visit, and counts them and their packages.
func write(b *strings.Builder, n *node, depth int, packages map[string]bool) (visits int) {
	for _, v := range n.visits {
		packages[v.Package] = true
		fmt.Fprintf(b, "%s%s/%s %s\n", strings.Repeat("  ", depth), v.Package, v.File, v.Function)
		visits += 1 + write(b, v, depth+1, packages)
	}
	return visits
}

// between follows the path from one end to the next: it counts the packages visited, and the returns to a package
// from which the path goes on to a third one.
func between(steps []record.Step) (packages, returns int) {
	var stack, last []string // lists of packages
	visited := map[string]bool{}
	for _, s := range steps {
		if s.Left {
			stack = stack[:len(stack)-1]
			continue
		}
		stack = append(stack, s.Package)
		if !ends[s.Package+" "+s.Function] {
			continue
		}
		now := way(stack)
		for _, p := range now {
			visited[p] = true
		}
		same := 0
		for same < min(len(now), len(last)) && now[same] == last[same] {
			same++
		}
		if last != nil && same < len(last) {
			returns++
		}
		last = now
	}
	return len(visited), returns
}

// way returns the packages of a stack, each once for nested calls within it.
func way(stack []string) (out []string) {
	for _, p := range stack {
		if !aside[p] && (len(out) == 0 || out[len(out)-1] != p) {
			out = append(out, p)
		}
	}
	return out
}
