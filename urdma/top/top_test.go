package top

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"urdma/inspect"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s is out of date (go test ./urdma/top -update writes it); got:\n%s", file, got)
	}
}

// two returns snapshots two seconds apart; meanwhile queue pair 0 wrote 4 MiB.
func two(t *testing.T) (last, now *inspect.Snapshot) {
	t.Helper()
	text, err := os.ReadFile("../report/testdata/snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	last, now = new(inspect.Snapshot), new(inspect.Snapshot)
	if err := errors.Join(json.Unmarshal(text, last), json.Unmarshal(text, now)); err != nil {
		t.Fatal(err)
	}
	now.Taken = last.Taken.Add(2 * time.Second)
	now.Ports[0].TxBytes += 9 << 20
	now.Ports[0].TxPackets += 6400
	now.Ports[0].RxDropped += 4
	q := &now.QPs[0]
	q.BytesSent += 8 << 20
	q.MessagesSent += 128
	w := *q.Wire
	w.Resent += 20
	q.Wire = &w
	now.Loop.Turns += 1000
	now.Loop.BusyTurns += 400
	now.Loop.AsleepNs += 5e8
	zone := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = zone })
	return last, now
}

// ofWorkers gives two snapshots a second worker.
func ofWorkers(last, now *inspect.Snapshot) {
	last.Workers = []inspect.Worker{{Number: 0, Loop: *last.Loop, Clients: 1, QPs: 2},
		{Number: 1, Loop: inspect.Loop{Core: 3}}}
	now.Workers = []inspect.Worker{{Number: 0, Loop: *now.Loop, Clients: 1, QPs: 2},
		{Number: 1, Loop: inspect.Loop{Core: 3, Turns: 10, AsleepNs: 1e9}}}
	now.Workers[0].Received, now.Workers[0].HandedOn = 12000, 6000
}

func TestPages(t *testing.T) {
	last, now := two(t)
	for _, c := range []struct {
		name string
		view View
	}{
		{"80x24.txt", View{Last: last, Now: now, Order: ByBytes, Width: 80, Height: 24}},
		{"40x10.txt", View{Last: last, Now: now, Order: ByBytes, Width: 40, Height: 10}},
		{"first.txt", View{Last: now, Now: now, Width: 80, Height: 24, Order: ByResent}},
		{"130x12.txt", View{Last: last, Now: now, Order: ByBytes, Width: 130, Height: 12}},
	} {
		got := c.view.Page()
		golden(t, c.name, got)
		fits(t, c.name, got, c.view.Width, c.view.Height)
	}
}

func fits(t *testing.T, name, page string, width, height int) {
	t.Helper()
	lines := strings.Split(page, "\n")
	if len(lines) != height {
		t.Errorf("%s: %d lines, expected %d", name, len(lines), height)
	}
	for i, l := range lines {
		if n := utf8.RuneCountInString(l); n > width {
			t.Errorf("%s: line %d has %d characters, expected at most %d: %q", name, i+1, n, width, l)
		}
	}
}

// TestWorkers: each of several workers has a line.
func TestWorkers(t *testing.T) {
	last, now := two(t)
	ofWorkers(last, now)
	v := View{Last: last, Now: now, Order: ByBytes, Width: 80, Height: 24}
	page := v.Page()
	golden(t, "workers.txt", page)
	fits(t, "workers.txt", page, v.Width, v.Height)
	var b strings.Builder
	if err := Lines(&b, last, now, ByBytes); err != nil {
		t.Fatal(err)
	}
	golden(t, "workers-lines.txt", strings.TrimSuffix(b.String(), "\n"))
}

// TestCrowd: many ports, queue pairs and long values still fit.
func TestCrowd(t *testing.T) {
	last, now := two(t)
	ofWorkers(last, now)
	for range 6 {
		last.Workers, now.Workers = append(last.Workers, last.Workers[1]), append(now.Workers, now.Workers[1])
	}
	for i := range 200 {
		q := now.QPs[0]
		q.Handle, q.QPN, q.PID = uint32(100+i), 0xfffff0, 4194304
		q.Command, q.Peer = "a-program-with-a-very-long-name", "255.255.255.255:65535"
		q.BytesSent, q.MessagesRecv = 1<<62, 1<<62
		now.QPs = append(now.QPs, q)
		p := now.Ports[0]
		p.Name = fmt.Sprintf("a-port-with-a-long-name-%d", i)
		p.RxBytes, p.TxPackets = 1<<62, 1<<62
		now.Ports = append(now.Ports, p)
	}
	for _, size := range [][2]int{{80, 24}, {40, 8}, {200, 60}, {81, 25}} {
		v := View{Last: last, Now: now, Order: ByBytes, Width: size[0], Height: size[1]}
		fits(t, fmt.Sprint(size), v.Page(), size[0], size[1])
	}
	if page := (View{Last: last, Now: now, Order: ByBytes, Width: 80, Height: 24}).Page(); !strings.Contains(page,
		"LOST/s\n") || !strings.Contains(page, "255.255.255.255:65535") {
		t.Errorf("80x24 loses columns:\n%s", page)
	}
}

func TestOrder(t *testing.T) {
	last, now := two(t)
	second := now.QPs[0]
	second.Handle = 77
	second.BytesSent, second.BytesRecv = 0, 1
	second.MessagesRecv, second.MessagesSent = 1e6, 0
	second.Wire = nil
	now.QPs = append(now.QPs, second)
	for order, want := range map[Order]uint32{ByBytes: 6, ByMessages: 77, ByResent: 6} {
		if r := compare(last, now, order); r.pairs[0].Handle != want {
			t.Errorf("by %v: %d comes first, expected %d", order, r.pairs[0].Handle, want)
		}
	}
	r := compare(last, now, ByBytes)
	if p := r.pairs[0]; p.out != 4<<20 || p.messages != 64 || p.resent != 10 {
		t.Errorf("rates: %v %v %v", p.out, p.messages, p.resent)
	}
}

func TestLines(t *testing.T) {
	last, now := two(t)
	var b strings.Builder
	if err := Lines(&b, last, now, ByBytes); err != nil {
		t.Fatal(err)
	}
	golden(t, "lines.txt", strings.TrimSuffix(b.String(), "\n"))
}
