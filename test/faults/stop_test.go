package faults

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

const (
	deathTimeout = 3 * time.Second
	shortStop    = deathTimeout / 3
	longStop     = 2*deathTimeout + 500*time.Millisecond
)

// stopWires are the wires of TestStop.
func stopWires() []lab.Wire {
	if long {
		return []lab.Wire{lab.Memif, lab.UDP, lab.TCP, lab.AFPacket, lab.AFXDP}
	}
	return []lab.Wire{lab.Memif}
}

// TestStop stops (SIGSTOP) every process of a connection in turn and lets it continue.
//
// For less than the death timeout, nothing breaks. For longer: a program's connection remains, since its urdmad
// answers for it. A stopped urdmad's connections end at both ends with an error, except over TCP, where the kernel
// answers for it. Other connections continue, including those within the stopped urdmad, and new ones work. If both
// urdmads are stopped together, as in a machine that sleeps, nothing is lost.
func TestStop(t *testing.T) {
	for _, w := range stopWires() {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, lab.Config{"death_timeout_ms": deathTimeout.Milliseconds()})
			s := &stopping{t: t, a: a, b: b, within: map[*lab.Node]*checked{a: pair(t, a, a), b: pair(t, b, b)}}
			s.connect()
			s.together(longStop)
			for _, p := range []*lab.Process{s.server, s.client, a.Daemon, b.Daemon} {
				s.stop(shortStop, p)
				s.stands()
			}
			for _, p := range []*lab.Process{s.server, s.client} {
				s.stop(longStop, p)
				s.stands()
			}
			for _, n := range []*lab.Node{a, b} {
				s.stop(longStop, n.Daemon)
				if w.Device == lab.TCP.Device {
					s.stands()
					continue
				}
				s.breaks()
				s.connect()
			}
		})
	}
}

// stopping is two hosts with a connection of two processes between them, and a checked pair within each.
type stopping struct {
	t              *testing.T
	a, b           *lab.Node
	server, client *lab.Process
	within         map[*lab.Node]*checked
	port           int
}

// connect starts a server at a and its client at b.
func (s *stopping) connect() {
	s.t.Helper()
	s.port++
	address := fmt.Sprintf("%s:%d", s.a.Address, 7900+s.port)
	s.server = end(s.t, s.a, "server", address)
	s.client = end(s.t, s.b, "client", address)
	s.stands()
}

// stop stops a process for a time. Checked pairs that don't depend on it continue meanwhile, the others afterwards.
func (s *stopping) stop(length time.Duration, p *lab.Process) {
	s.t.Helper()
	p.Signal(syscall.SIGSTOP)
	end := time.Now().Add(length)
	for n, c := range s.within {
		if n.Daemon != p && length > deathTimeout { // otherwise the stop must not take longer
			c.advances(fmt.Sprintf("process %d stopped", p.PID()))
		}
	}
	time.Sleep(time.Until(end))
	p.Signal(syscall.SIGCONT)
	for _, c := range s.within {
		c.advances(fmt.Sprintf("process %d going on", p.PID()))
	}
	running(s.t, s.a, s.b)
}

// together stops both urdmads.
func (s *stopping) together(length time.Duration) {
	s.t.Helper()
	for _, by := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		for _, n := range []*lab.Node{s.a, s.b} {
			n.Daemon.Signal(by)
		}
		if by == syscall.SIGSTOP {
			time.Sleep(length)
		}
	}
	s.stands()
}

// stands checks that the connection of two processes makes progress.
func (s *stopping) stands() {
	s.t.Helper()
	last := func() (n int) {
		_, after, _ := cutLast(s.client.Output(), "round ")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	from := last()
	awaits(s.t, "the connection goes on", patience, func() bool {
		if !s.client.Running() || !s.server.Running() {
			s.t.Fatalf("the connection ended:\n%s\n%s", lab.Tail(s.client.Output(), 2), lab.Tail(s.server.Output(), 2))
		}
		return last() > from
	})
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// breaks checks that both ends get an error.
func (s *stopping) breaks() {
	s.t.Helper()
	for _, p := range []*lab.Process{s.server, s.client} {
		_ = p.Wait(deathTimeout + patience)
		if out := p.Output(); !strings.Contains(out, "failed: ") {
			s.t.Fatalf("after %v without its peer a program said:\n%s", longStop, lab.Tail(out, 3))
		}
	}
}
