package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
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
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date (go test ./urdma/report -update writes it); got:\n%s", file, got)
	}
}

// sample is a urdmad with a connection over the wire and one within the host.
func sample(t *testing.T) *inspect.Snapshot {
	t.Helper()
	text, err := os.ReadFile("testdata/snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	s := new(inspect.Snapshot)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		t.Fatal(err)
	}
	zone := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = zone })
	return s
}

func TestTables(t *testing.T) {
	s := sample(t)
	for i := range Kinds {
		k := &Kinds[i]
		var b strings.Builder
		err := k.Table(&b, s)
		if k.Missing != "" {
			if !errors.Is(err, ErrMissing) {
				t.Errorf("%s: %v, expected ErrMissing", k.Name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		golden(t, k.Name+".txt", b.String())
	}
}

// TestBriefTables: what urdma show prints by default fits a terminal of 80 columns.
func TestBriefTables(t *testing.T) {
	for i := range Kinds {
		k := &Kinds[i]
		if k.Brief == nil {
			continue
		}
		var b strings.Builder
		if err := k.Table(&b, sample(t), k.Brief...); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(b.String(), "\n")
		if got := strings.Fields(head); !slices.Equal(got, k.Brief) {
			t.Errorf("%s has the columns %q, expected %q", k.Name, got, k.Brief)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s has %d columns: %s", k.Name, n, line)
			}
		}
	}
}

// TestStatusLeavesOutTheResponder: urdmad's own client and its objects are not counted as the user's.
func TestStatusLeavesOutTheResponder(t *testing.T) {
	s := sample(t)
	own := s.Daemon.PID
	object := inspect.Object{PID: own}
	s.Clients = append(s.Clients, inspect.Client{PID: own, Command: "urdmad", SharedRegions: 1, SharedBytes: 4096})
	s.Connections = append(s.Connections, inspect.Connection{Object: object})
	s.Listeners = append(s.Listeners, inspect.Listener{Object: object})
	s.Domains = append(s.Domains, inspect.Domain{Object: object})
	s.CQs = append(s.CQs, inspect.CQ{Object: object})
	s.QPs = append(s.QPs, inspect.QP{Object: object, State: "RTS", Work: inspect.Work{MessagesSent: 7, BytesSent: 7}})
	for file, details := range map[string]bool{"status.txt": false, "status-verbose.txt": true} {
		var b strings.Builder
		if err := Status(&b, s, details); err != nil {
			t.Fatal(err)
		}
		golden(t, file, b.String())
	}
}

func TestStatus(t *testing.T) {
	s := sample(t)
	var b strings.Builder
	if err := Status(&b, s, false); err != nil {
		t.Fatal(err)
	}
	golden(t, "status.txt", b.String())
	b.Reset()
	if err := Status(&b, s, true); err != nil {
		t.Fatal(err)
	}
	golden(t, "status-verbose.txt", b.String())
	b.Reset()
	s.Restricted, s.Loop, s.Totals, s.Handshakes = true, nil, nil, nil
	if err := Status(&b, s, true); err != nil {
		t.Fatal(err)
	}
	golden(t, "status-restricted.txt", b.String())
	b.Reset()
	if err := Status(&b, &inspect.Snapshot{}, true); err != nil {
		t.Fatal(err)
	}
}

func TestJSONIsAnArray(t *testing.T) {
	for i := range Kinds {
		k := &Kinds[i]
		if k.Missing != "" {
			continue
		}
		var b strings.Builder
		if err := k.JSON(&b, sample(t)); err != nil {
			t.Error(err)
		}
		var list []map[string]any
		if err := json.Unmarshal([]byte(b.String()), &list); err != nil || len(list) == 0 {
			t.Errorf("%s: %d objects, %v", k.Name, len(list), err)
		}
	}
}

func TestTabsStayInTheirCell(t *testing.T) {
	var b strings.Builder
	columns := []column[string]{{"A", func(s *string) string { return *s }}, {"B", func(*string) string { return "b" }}}
	if err := write(&b, columns, []string{"x\ty"}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "A    B\nx y  b\n"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestUnits(t *testing.T) {
	for _, c := range [][2]string{
		{Bytes(0), "0"}, {Bytes(1023), "1023"}, {Bytes(1024), "1KiB"}, {Bytes(1536), "1.5KiB"}, {Bytes(1 << 20), "1MiB"},
		{Bytes(1<<20 - 1), "1MiB"}, {Bytes(^uint64(0)), "16EiB"},
		{Count(0), "0"}, {Count(999.4), "999"}, {Count(1e3), "1k"}, {Count(12345678), "12.3M"}, {Count(-1), "0"},
		{Duration(0), "-"}, {Duration(999), "999ns"}, {Duration(12345), "12.3µs"}, {Duration(4e6), "4ms"},
		{Duration(1.5e9), "1.5s"},
		{Span(59 * time.Second), "59s"}, {Span(61 * time.Second), "1m1s"}, {Span(25*time.Hour + time.Minute), "1d1h"},
		{Span(-time.Second), "-1s"},
		{Percent(1, 0), "-"}, {Percent(1, 3), "33.3%"}, {Percent(0, 3), "0%"}, {Percent(1, 1e6), "<0.01%"},
		{access(1 | 4), "l-r---"}, {access(63), "lwrabz"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, expected %q", c[0], c[1])
		}
	}
}

func TestFilter(t *testing.T) {
	s := sample(t)
	q := s.QPs[0]
	for _, f := range []Filter{{}, {PID: q.PID}, {Port: q.Device}, {QPN: q.QPN}, {PID: 1 << 30}, {Port: "nosuch"},
		{QPN: 0xabcdef}} {
		got := f.Apply(s)
		n := [...]int{len(got.Ports), len(got.Clients), len(got.Domains), len(got.Regions), len(got.CQs), len(got.QPs),
			len(got.Connections)}
		all := [...]int{len(s.Ports), len(s.Clients), len(s.Domains), len(s.Regions), len(s.CQs), len(s.QPs),
			len(s.Connections)}
		switch {
		case f == Filter{}:
			if n != all {
				t.Errorf("no filter leaves %v of %v", n, all)
			}
		case f.PID == 1<<30 || f.Port == "nosuch" || f.QPN == 0xabcdef:
			if len(got.QPs)+len(got.Regions)+len(got.CQs)+len(got.Domains)+len(got.Connections) != 0 {
				t.Errorf("%+v leaves %v", f, n)
			}
		default:
			if len(got.QPs) != 1 || got.QPs[0].QPN != q.QPN || len(got.Domains) == 0 || len(got.CQs) == 0 ||
				len(got.Clients) == 0 || n == all {
				t.Errorf("%+v leaves %v of %v", f, n, all)
			}
		}
	}
	for _, r := range (&Filter{QPN: q.QPN}).Apply(s).Regions {
		if r.Domain != q.Domain {
			t.Errorf("region %08x is of domain %d, the queue pair of %d", r.LKey, r.Domain, q.Domain)
		}
	}
}

func TestFull(t *testing.T) {
	s := sample(t)
	for i := range Kinds {
		k := &Kinds[i]
		for _, name := range k.Names(s) {
			var b strings.Builder
			if err := k.Full(&b, s, name, false); err != nil {
				t.Errorf("%s %s: %v", k.Name, name, err)
			}
		}
	}
	var b strings.Builder
	if err := Find("qp").Full(&b, s, "0x871CEC", false); err != nil {
		t.Fatal(err)
	}
	golden(t, "qp-full.txt", b.String())
	if err := Find("qp").Full(&b, s, "123456", false); !errors.Is(err, ErrNone) {
		t.Errorf("no such queue pair: %v", err)
	}
}

func TestColumns(t *testing.T) {
	var b strings.Builder
	if err := Find("qp").Table(&b, sample(t), "state", "QPN"); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, "STATE  QPN\nRTS    871cec\n") {
		t.Errorf("got %s", got)
	}
}
