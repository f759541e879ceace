package mpi

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"urdma/test/lab"
)

// silent is openib's message about the first failed completion that it polls: RETRY EXCEEDED, or one that was flushed
// with it.
var silent = regexp.MustCompile("vendor error +1282 ") // 0x0502

// TestLink: a scenario file takes a link down for 200 ms during a job, which continues; a scenario that leaves the
// link down ends the job. In long runs both happen again with the same seed.
func TestLink(t *testing.T) {
	needOpenib(t)
	w := private // timeout 14 is 67 ms; with openib's own 20 the end would take two minutes
	w.parameters = append(slices.Clone(w.parameters), "btl_openib_ib_timeout", "14")
	times := 1
	if long {
		times = 2
	}
	for _, wire := range []lab.Wire{lab.Loopback, lab.Memif} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newHosts(t, wire, func(l *lab.Lab, settings lab.Config) ([]*lab.Node, error) {
				settings["death_timeout_ms"] = 2000
				a, b, err := l.Join(wire, settings)
				return []*lab.Node{a, b}[:map[bool]int{true: 1, false: 2}[a == b]], err
			})
			for range times {
				c.scenario(t, "after send nth=200 # of the job's\nport urdma0 down\nwait 200ms\nport urdma0 up")
				pass(t, c, 2, w, 1<<20, "flood", "collectives")
				c.left(t)
			}
			for range times {
				c.scenario(t, "after send nth=200 p=50% seed=7\nport urdma0 down")
				if out, err := c.run(2, w, 2*time.Minute, c.check, "flood", "collectives"); err == nil || !silent.MatchString(out) {
					t.Errorf("%v, expected that the job ends with vendor_err 0x0502\n%s", err, lab.Tail(out, 40))
				}
				c.inject(t, "port urdma0 up")
				c.left(t)
			}
		})
	}
}

// scenario starts a scenario file at the last host.
func (c *cluster) scenario(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(c.hosts[len(c.hosts)-1].Directory(), "scenario")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c.inject(t, "-f", file)
}

func (c *cluster) inject(t *testing.T, arguments ...string) {
	t.Helper()
	if out, err := c.hosts[len(c.hosts)-1].Urdma(append([]string{"inject"}, arguments...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
