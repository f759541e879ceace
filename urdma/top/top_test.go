package top

import (
	"bytes"
	"context"
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

	tea "charm.land/bubbletea/v2"

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

// two are snapshots two seconds apart; in between queue pair 0 wrote 4 MiB.
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

// ofWorkers has two snapshots be of a urdmad with two workers.
func ofWorkers(last, now *inspect.Snapshot) {
	last.Workers = []inspect.Worker{{Number: 0, Loop: *last.Loop, Clients: 1, QPs: 2}, {Number: 1, Loop: inspect.Loop{Core: 3}}}
	now.Workers = []inspect.Worker{{Number: 0, Loop: *now.Loop, Clients: 1, QPs: 2}, {Number: 1, Loop: inspect.Loop{Core: 3, Turns: 10, AsleepNs: 1e9}}}
	now.Workers[0].Received, now.Workers[0].HandedOn = 12000, 6000
}

func TestPages(t *testing.T) {
	last, now := two(t)
	for _, c := range []struct {
		name string
		view view
	}{
		{"80x24.txt", view{last: last, now: now, width: 80, height: 24}},
		{"40x10.txt", view{last: last, now: now, width: 40, height: 10}},
		{"first.txt", view{now: now, width: 80, height: 24, paused: true, order: ByResent}},
		{"130x12.txt", view{last: last, now: now, width: 130, height: 12}},
		{"gone.txt", view{err: errors.New("no urdmad is running at /run/urdma/urdmad.sock"), width: 80, height: 8}},
	} {
		got := c.view.page()
		golden(t, c.name, got)
		fits(t, c.name, got, c.view.width, c.view.height)
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

// TestWorkers: several workers are shown each.
func TestWorkers(t *testing.T) {
	last, now := two(t)
	ofWorkers(last, now)
	v := view{last: last, now: now, width: 80, height: 24}
	page := v.page()
	golden(t, "workers.txt", page)
	fits(t, "workers.txt", page, v.width, v.height)
	var b strings.Builder
	if err := writeLines(&b, last, now); err != nil {
		t.Fatal(err)
	}
	golden(t, "workers-plain.txt", strings.TrimSuffix(b.String(), "\n"))
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
		v := view{last: last, now: now, width: size[0], height: size[1]}
		fits(t, fmt.Sprint(size), v.page(), size[0], size[1])
	}
	if page := (view{last: last, now: now, width: 80, height: 24}).page(); !strings.Contains(page, "LOST/s\n") || !strings.Contains(page, "255.255.255.255:65535") {
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

func TestKeysAndErrors(t *testing.T) {
	last, now := two(t)
	var m tea.Model = model{view: view{width: 80, height: 24}, every: time.Hour}
	send := func(msg tea.Msg) tea.Cmd {
		var c tea.Cmd
		m, c = m.Update(msg)
		return c
	}
	key := func(k string) tea.Cmd { return send(tea.KeyPressMsg{Code: rune(k[0]), Text: k}) }
	send(arrived{snap: last})
	send(arrived{snap: now})
	if !strings.Contains(m.View().Content, "4MiB") {
		t.Errorf("no rate after two snapshots:\n%s", m.View().Content)
	}
	key("s")
	if v := m.(model); v.order != ByMessages {
		t.Errorf("s sorts by %v", v.order)
	}
	key("p")
	send(arrived{err: errors.New("gone")})
	if !strings.Contains(m.View().Content, "PAUSED") || strings.Contains(m.View().Content, "gone") {
		t.Errorf("paused:\n%s", m.View().Content)
	}
	key("p")
	send(arrived{err: errors.New("gone")})
	if !strings.Contains(m.View().Content, "gone") {
		t.Errorf("error is not shown:\n%s", m.View().Content)
	}
	other := *now
	other.Daemon.Started = now.Taken
	send(arrived{snap: &other})
	if v := m.(model); v.last != nil || v.err != nil {
		t.Error("another urdmad is compared with the one before")
	}
	send(tea.WindowSizeMsg{Width: 100, Height: 30})
	fits(t, "after resizing", m.View().Content, 100, 30)
	if c := key("q"); c == nil || c() != tea.Quit() {
		t.Error("q does not quit")
	}
}

// TestRun plays a whole session with a pipe for a terminal.
func TestRun(t *testing.T) {
	_, now := two(t)
	asked := make(chan struct{}, 100)
	m := model{view: view{width: 80, height: 24}, every: time.Millisecond, next: func() (*inspect.Snapshot, error) {
		asked <- struct{}{}
		return now, nil
	}}
	var out bytes.Buffer
	p := tea.NewProgram(m, tea.WithInput(nil), tea.WithOutput(&out), tea.WithoutSignals(), tea.WithWindowSize(80, 24))
	go func() {
		<-asked
		<-asked
		p.Send(tea.KeyPressMsg{Code: 'q', Text: "q"})
	}()
	if _, err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "ib_write_bw") {
		t.Errorf("nothing was drawn: %q", out.String())
	}
}

func TestPlain(t *testing.T) {
	last, now := two(t)
	n := 0
	next := func() (*inspect.Snapshot, error) {
		n++
		if n == 1 {
			return last, nil
		}
		return now, nil
	}
	var b strings.Builder
	if err := Plain(context.Background(), &b, next, time.Millisecond, 1); err != nil {
		t.Fatal(err)
	}
	golden(t, "plain.txt", strings.TrimSuffix(b.String(), "\n"))
	gone := errors.New("gone")
	if err := Plain(context.Background(), &b, func() (*inspect.Snapshot, error) { return nil, gone }, time.Millisecond, 1); !errors.Is(err, gone) {
		t.Errorf("%v, expected the error", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := Plain(ctx, &b, next, time.Hour, 0); err != nil {
		t.Error(err)
	}
}
