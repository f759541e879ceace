package test

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// pair is a server and a client that end by themselves. A word that begins with "build:" names an example.
type pair struct {
	name, server, client string
	transports           string
}

var pairs = []pair{
	{"rping", "rping -s -a ADDRESS -C 20 -V", "rping -c -a ADDRESS -C 20 -V", "iwarp ib roce"},
	{"rping with its own queue pair", "rping -s -a ADDRESS -C 20 -V -q", "rping -c -a ADDRESS -C 20 -V -q",
		"iwarp ib roce"},
	{"rping with sizes and a source", "rping -s -C 10 -v -S 4000", "rping -c -a ADDRESS -I ADDRESS -C 10 -v -S 4000",
		"iwarp"},
	{"rping, mapped", "rping -s -a ::ffff:ADDRESS -C 5 -V", "rping -c -a ::ffff:ADDRESS -C 5 -V", "iwarp ib"},
	{"rping, dual wildcard", "rping -s -a :: -C 5 -V", "rping -c -a ADDRESS -C 5 -V", "roce"},
	{"rping, loopback for a real address", "rping -s -a 127.0.0.1 -C 5", "rping -c -a ADDRESS -C 5", "iwarp"},
	{"rping, loopback of IPv6", "rping -s -a ::1 -C 5", "rping -c -a ::1 -C 5", "iwarp"},
	{"ucmatose with options", "ucmatose -b ADDRESS -t 8 -a 14 -S 5000 -f ip",
		"ucmatose -s ADDRESS -b ADDRESS -t 8 -a 14 -S 5000 -f ip", "iwarp roce"},
	{"ucmatose, port space of InfiniBand", "ucmatose -P ib", "ucmatose -s ADDRESS -P ib", "ib"},
	{"ucmatose", "ucmatose -b ADDRESS -c 10 -C 20", "ucmatose -s ADDRESS -c 10 -C 20", "iwarp ib"},
	{"ucmatose migrating", "ucmatose -b ADDRESS -m", "ucmatose -s ADDRESS -m", "iwarp"},
	{"udaddy, loopback", "udaddy -c 2 -C 20", "udaddy -s 127.0.0.1 -c 2 -C 20", "iwarp ib roce"},
	{"rdma_server", "rdma_server -p 7600", "rdma_client -s ADDRESS -p 7600", "iwarp ib roce"},
	{"ep", "build:ep-server 7601", "build:ep-client ADDRESS 7601", "iwarp ib roce"},
	{"cmid", "build:cmid-server 7602", "build:cmid-client ADDRESS 7602", "iwarp ib roce"},
	{"device", "build:device-server 7603", "build:device-client ADDRESS 7603", "iwarp ib roce"},
}

// words splits a command into words; skips the test if the program isn't installed.
func words(t *testing.T, command string) []string {
	t.Helper()
	args := strings.Fields(strings.ReplaceAll(command, "ADDRESS", address))
	if name, ok := strings.CutPrefix(args[0], "build:"); ok {
		args[0] = built(t, "examples/"+name)
	} else if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("needs rdmacm-utils: %v", err)
	}
	return args
}

func TestPrograms(t *testing.T) {
	built(t, "liburdma.so")
	d := startDaemon(t)
	for _, p := range pairs {
		for _, transport := range strings.Fields(p.transports) {
			t.Run(p.name+"/"+transport, func(t *testing.T) {
				server := d.start(t, transport, words(t, p.server)...)
				d.listens(t, server)
				client := d.start(t, transport, words(t, p.client)...)
				client.succeed(t)
				server.succeed(t)
			})
		}
	}
}

// TestCmtime: 1,000 connections at once. The client has two completion channels for each, so it needs many
// descriptors.
func TestCmtime(t *testing.T) {
	d := startDaemon(t)
	for _, transport := range []string{"iwarp", "ib"} {
		words(t, "cmtime")
		server := d.start(t, transport, "sh", "-c", "ulimit -n 5000 && exec cmtime -b "+address)
		d.listens(t, server)
		client := d.start(t, transport, "sh", "-c", "ulimit -n 5000 && exec cmtime -c 1000 -s "+address)
		client.succeed(t)
		if said := client.output.String(); strings.Contains(said, "fail") || !strings.Contains(said, "disconnect") {
			t.Errorf("cmtime said:\n%s", said)
		}
		_ = server.cmd.Process.Kill()
		<-server.done
	}
}

// A connection to a port where nobody listens must fail at once, not hang.
func TestRefusedConnections(t *testing.T) {
	d := startDaemon(t)
	for _, command := range []string{
		"build:ep-client ADDRESS 7999", "build:cmid-client ADDRESS 7999",
		"build:device-client ADDRESS 7999", "build:ep-client 192.0.2.1 7999",
		"rping -c -a ADDRESS -C 1", "rdma_client -s ADDRESS -p 7999",
	} {
		t.Run(command, func(t *testing.T) { d.start(t, "iwarp", words(t, command)...).fail(t) })
	}
}

// Programs that wait for something must end when urdmad does.
func TestDaemonDies(t *testing.T) {
	d := startDaemon(t)
	var waiting []*program
	for _, command := range []string{
		"rping -s -a ADDRESS", "rping -s -p 7001", "build:ep-server 7002", "build:cmid-server 7003",
		"build:device-server 7004", "ucmatose -b ADDRESS -p 7005", "rdma_server -p 7006",
	} {
		waiting = append(waiting, d.start(t, "iwarp", words(t, command)...))
	}
	waiting = append(waiting, d.start(t, "iwarp", words(t, "rping -s -a ADDRESS -p 7007 -C 100000000")...))
	for _, server := range waiting {
		d.listens(t, server)
	}
	waiting = append(waiting, d.start(t, "iwarp", words(t, "rping -c -a ADDRESS -p 7007 -C 100000000")...))
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s := d.status(t)
		if named(s, "local_messages") > 0 || named(s, "segments_placed") > 0 { // of one worker, or between two
			break
		}
		if time.Now().After(end) {
			t.Fatal("rping does not run")
		}
	}
	d.Kill()
	for _, p := range waiting {
		p.fail(t)
	}
}
