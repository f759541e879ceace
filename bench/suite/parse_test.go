package suite

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

const sockperfOutput = `sockperf: == version #3.7-no.git ==
sockperf: Summary: Latency is 13.634 usec
sockperf: Total 20195 observations; each percentile contains 201.95 observations
sockperf: ---> <MAX> observation = 6927.395
sockperf: ---> percentile 99.900 = 1829.248
sockperf: ---> percentile 99.000 =  149.397
sockperf: ---> percentile 50.000 =    3.138
sockperf: ---> percentile 25.000 =    2.821
`

func TestParseSockperf(t *testing.T) {
	v, err := parseSockperf(sockperfOutput)
	if err != nil || !slices.Equal(v, []float64{3.138, 149.397}) {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := parseSockperf("sockperf: ERROR: no answer"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v does not show what sockperf said", err)
	}
}

func TestParseBytes(t *testing.T) {
	if v, err := parseBytes("53.920\n"); err != nil || !slices.Equal(v, []float64{53.92}) {
		t.Errorf("%v, %v", v, err)
	}
	for _, bad := range []string{"", "0.000\n", "bytes: Connection refused"} {
		if v, err := parseBytes(bad); err == nil {
			t.Errorf("%q: %v and no error", bad, v)
		}
	}
}

func TestParseIperf3(t *testing.T) {
	const out = `{"end": {"sum_received": {"seconds": 2, "bytes": 5000000000, "bits_per_second": 2e10},
		"cpu_utilization_percent": {"host_total": 40, "remote_total": 60}}}`
	v, err := parseIperf3(out)
	if err != nil || !slices.Equal(v, []float64{20, 0.4}) { // 2 s of one processor for 5 GB
		t.Errorf("%v, %v", v, err)
	}
	if _, err := parseIperf3(`{"error": "unable to connect"}`); err == nil ||
		!strings.Contains(err.Error(), "unable to connect") {
		t.Errorf("error %v does not show what iperf3 said", err)
	}
}

func TestParseCmtime(t *testing.T) {
	const out = `step              total ms     max ms     min us  us / conn
create id    :        1.00       0.01       1.00       2.00
bind addr    :        0.00       0.00       0.00       0.00
resolve addr :        4.00       0.01       1.00       2.00
resolve route:        5.00       0.01       1.00       2.00
create qp    :       40.00       0.01       1.00       2.00
connect      :       50.00       0.10       1.00       2.00
disconnect   :      900.00       0.10       1.00       2.00
destroy      :      800.00       0.10       1.00       2.00
`
	// 100 connections in 100 ms
	if v, err := parseCmtime(out, 100); err != nil || !slices.Equal(v, []float64{1000}) {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := parseCmtime("cmtime: no device", 100); err == nil || !strings.Contains(err.Error(), "no device") {
		t.Errorf("error %v does not show what cmtime said", err)
	}
}

func TestParseNetpipe(t *testing.T) {
	if v, err := parseNetpipe("   65536 32000.0   0.00002\n"); err != nil || !slices.Equal(v, []float64{32, 20}) {
		t.Errorf("%v, %v", v, err)
	}
	for _, bad := range []string{"", "1 2", "1 x y"} {
		if v, err := parseNetpipe(bad); err == nil {
			t.Errorf("%q: %v and no error", bad, v)
		}
	}
}

func TestParseRegistration(t *testing.T) {
	const out = "page.reg 1\npage.again 2\npage.dereg 3\nall.copy 4\nall.reg 5\nall.again 6\nall.dereg 7\nfresh.enter " +
		"8\nfresh.reg 9\n" +
		"mib.reg 10\nmib.dereg 11\nmib.pin 12\nmib.unlock 13\nall.lock 14\nall.pin 15\nall.unlock 16\n" +
		"page.pin 17\npage.unlock 18\nborn.alloc 19\nborn.reg 20\nborn.dereg 21\n"
	if v, err := parseRegistration(out); err != nil ||
		!slices.Equal(v, []float64{1, 3, 2, 17, 18, 10, 11, 12, 13, 5, 7, 6, 4, 14, 15, 16, 9, 8, 19, 20, 21}) {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := parseRegistration("ibv_reg_mr: no memory"); err == nil || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("error %v does not show what was said", err)
	}
}

// TestLimit: a round begins only if the limit leaves time for it, and the result contains the number of rounds.
// Measures of few rounds are taken in the first ones.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		limit       time.Duration
		rounds, few int
	}{{0, 4, 2}, {time.Hour, 4, 2}, {time.Nanosecond, 1, 1}} {
		b := &bench{left: map[string]bool{}, start: time.Now(), total: 8}
		b.Options = Options{Context: t.Context(), Rounds: 4, Limit: c.limit, Log: io.Discard}
		b.result.Rounds = 4
		taken := map[string]int{}
		count := func(id string) measure {
			return gigabits(id, id, func(*bench) ([]float64, error) { taken[id]++; return []float64{1}, nil })
		}
		b.rounds([]measure{count("all"), count("few").in(2)})
		if taken["all"] != c.rounds || taken["few"] != c.few || b.result.Rounds != c.rounds {
			t.Errorf("limit %v: %v, %d rounds in the result; expected %d and %d", c.limit, taken, b.result.Rounds, c.rounds,
				c.few)
		}
	}
}

// Every target refers to existing figures, and names and IDs are unique.
func TestTargetsNameFigures(t *testing.T) {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, m := range measures() {
		if names[m.name] {
			t.Errorf("two measures are named %q", m.name)
		}
		names[m.name] = true
		for _, f := range m.figures {
			if ids[f.ID] {
				t.Errorf("two figures have the ID %q", f.ID)
			}
			ids[f.ID] = true
		}
	}
	for _, target := range targets() {
		if !ids[target.Ours] || target.Peer != "" && !ids[target.Peer] {
			t.Errorf("%q is about %q and %q: no such figure", target.Title, target.Ours, target.Peer)
		}
		if target.Least == 0 && target.Most == 0 {
			t.Errorf("%q asks for nothing", target.Title)
		}
	}
}
