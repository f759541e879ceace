package faults

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// TestUpgrade stops urdmad and starts another under running programs, by SIGTERM as a service manager does, and by
// SIGKILL. Each program's connection ends with an error, and its device, if it was that urdmad's, with
// IBV_EVENT_DEVICE_FATAL. When the program opens and connects again, it works. Connections within the other urdmad
// are not affected.
func TestUpgrade(t *testing.T) {
	reopen := programtest.Compile(t, filepath.Join(t.TempDir(), "reopen"), "testdata/reopen.c", "-lrdmacm", "-libverbs")
	for name, stop := range map[string]func(*lab.Node) error{
		"SIGTERM": (*lab.Node).StopDaemon,
		"SIGKILL": func(n *lab.Node) error { n.Daemon.Kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := labtest.Join(t, lab.Memif, lab.Config{"death_timeout_ms": 1000})
			u := &upgrade{t: t, a: a, b: b, stop: stop, beside: pair(t, b, b)}
			c, err := install(a, reopen, "reopen")
			if err != nil {
				t.Fatal(err)
			}
			u.programs("C", "7998", func(n *lab.Node, role, port string) (*lab.Process, error) {
				return n.Exec(c, role, a.Address, port)
			})
			u.programs("Go", "7999", func(n *lab.Node, role, port string) (*lab.Process, error) {
				return n.Start("env", programEnv+"="+role+" "+n.Socket()+" "+a.Address+":"+port, copied(t, n))
			})
			rounds := 1
			if long {
				rounds = 5
			}
			for range rounds {
				u.replace(a)
				u.replace(b)
			}
		})
	}
}

// install copies a program to a place where users of the node can run it.
func install(n *lab.Node, from, name string) (to string, err error) {
	to = filepath.Join(filepath.Dir(n.Directory()), name)
	return to, exec.Command("install", "-m", "755", from, to).Run()
}

// upgrade is two hosts with programs on them.
type upgrade struct {
	t       *testing.T
	a, b    *lab.Node
	stop    func(*lab.Node) error
	beside  *checked
	servers []*lab.Process // at a
	clients []*lab.Process // at b
}

func (u *upgrade) programs(name, port string, start func(n *lab.Node, role, port string) (*lab.Process, error)) {
	u.t.Helper()
	server, err := start(u.a, "server", port)
	if err != nil {
		u.t.Fatal(err)
	}
	client, err := start(u.b, "client", port)
	if err != nil {
		u.t.Fatal(err)
	}
	u.servers, u.clients = append(u.servers, server), append(u.clients, client)
	u.work(name)
}

// replace replaces one urdmad.
func (u *upgrade) replace(n *lab.Node) {
	u.t.Helper()
	own := u.servers
	if n == u.b {
		own = u.clients
		u.beside.over = true // its urdmad ends
		defer func() { u.beside = pair(u.t, u.b, u.b) }()
	}
	fatal, connected := u.count(own, "device fatal"), u.count(u.clients, "connected")
	if err := u.stop(n); err != nil {
		u.t.Fatal(err)
	}
	for i, p := range own {
		u.await(p, "device fatal", fatal[i])
		if i == 0 && !strings.Contains(p.Output(), "urdmad has ended") { // printed by the C program's library
			u.t.Errorf("the library does not tell of it:\n%s", lab.Tail(p.Output(), 20))
		}
	}
	if n == u.a {
		u.beside.advances("without the other urdmad")
	} else {
		u.beside.breaks(patience)
	}
	if err := n.StartDaemon(); err != nil {
		u.t.Fatal(err)
	}
	for i, c := range u.clients {
		u.await(c, "connected", connected[i]) // only then both ends have devices that can report their end
	}
	u.work("after urdmad of " + n.Name + " was replaced")
	if n == u.a {
		u.beside.advances("with a new urdmad at the other end")
	}
}

// work waits until every pair of programs has done more rounds.
func (u *upgrade) work(when string) {
	u.t.Helper()
	before := u.count(u.clients, "round ")
	for i, c := range u.clients {
		u.await(c, "round ", before[i])
		if out := u.servers[i].Output() + c.Output(); strings.Contains(out, "wrong bytes") {
			u.t.Fatalf("%s:\n%s", when, lab.Tail(out, 20))
		}
	}
}

func (u *upgrade) count(programs []*lab.Process, what string) (n []int) {
	for _, p := range programs {
		n = append(n, strings.Count(p.Output(), what))
	}
	return n
}

// await waits until a program has printed a text once more than before.
func (u *upgrade) await(p *lab.Process, what string, before int) {
	u.t.Helper()
	awaits(u.t, what+", once more:\n"+lab.Tail(p.Output(), 5), 2*patience, func() bool {
		if !p.Running() {
			u.t.Fatalf("a program ended:\n%s", lab.Tail(p.Output(), 20))
		}
		return strings.Count(p.Output(), what) > before
	})
}
