package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"urdma/inspect"
)

// sample is the snapshot that package report's test prints.
func sample(t *testing.T) *inspect.Snapshot {
	t.Helper()
	text, err := os.ReadFile("../../../urdma/report/testdata/snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	s := new(inspect.Snapshot)
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func always(s *inspect.Snapshot) func(context.Context) (*inspect.Snapshot, error) {
	return func(context.Context) (*inspect.Snapshot, error) {
		c := *s
		return &c, nil
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.CollectAndLint(NewCollector(always(sample(t))))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCollector(always(sample(t))))
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}

func TestEveryFamilyHasAValue(t *testing.T) {
	s := sample(t)
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(always(s)))
	got, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range got {
		seen[f.GetName()] = true
	}
	for _, f := range families() {
		if !seen[f.name] {
			t.Errorf("%s has no value in the sample", f.name)
		}
	}
}

// TestEveryCountIsDescribed: a count in the snapshot has a metric with help, or is marked as having none.
func TestEveryCountIsDescribed(t *testing.T) {
	for _, kind := range []reflect.Type{reflect.TypeFor[inspect.Port](), reflect.TypeFor[inspect.Traffic](),
		reflect.TypeFor[inspect.Work](),
		reflect.TypeFor[inspect.Totals](), reflect.TypeFor[inspect.Handshakes](), reflect.TypeFor[inspect.Loop]()} {
		for i := range kind.NumField() {
			if f := kind.Field(i); f.Type.Kind() == reflect.Uint64 && f.Tag.Get("metric") == "" {
				t.Errorf("%v.%s has no metric tag", kind, f.Name)
			}
		}
	}
	for _, f := range families() {
		if f.help == "" {
			t.Errorf("%s has no help", f.name)
		}
	}
}

func TestValues(t *testing.T) {
	want := `
# HELP urdma_port_transmit_bytes_total Bytes of frames sent, Ethernet header included.
# TYPE urdma_port_transmit_bytes_total counter
urdma_port_transmit_bytes_total{port="urdma0"} 1.7e+08
urdma_port_transmit_bytes_total{port="urdma1"} 0
# HELP urdma_queue_pairs Queue pairs.
# TYPE urdma_queue_pairs gauge
urdma_queue_pairs{state="ERR"} 0
urdma_queue_pairs{state="INIT"} 1
urdma_queue_pairs{state="RESET"} 0
urdma_queue_pairs{state="RTR"} 0
urdma_queue_pairs{state="RTS"} 1
urdma_queue_pairs{state="SQD"} 0
urdma_queue_pairs{state="SQE"} 0
# HELP urdma_retransmitted_segments_total Segments sent again, for all causes.
# TYPE urdma_retransmitted_segments_total counter
urdma_retransmitted_segments_total{port="urdma0"} 1210
urdma_retransmitted_segments_total{port="urdma1"} 0
# HELP urdma_registered_bytes Bytes of memory regions by how urdmad reaches them.
# TYPE urdma_registered_bytes gauge
urdma_registered_bytes{path="fallback"} 4096
urdma_registered_bytes{path="shared"} 131072
# HELP urdma_terminates_total Terminate messages by cause (RFC 5040 section 4.8).
# TYPE urdma_terminates_total counter
urdma_terminates_total{cause="DDP tagged buffer: base or bounds",direction="out"} 2
# HELP urdma_slowest_round_trip_seconds Longest smoothed round-trip time of the port's connections; 0 where none is measured.
# TYPE urdma_slowest_round_trip_seconds gauge
urdma_slowest_round_trip_seconds{port="urdma0"} 4.1234e-05
urdma_slowest_round_trip_seconds{port="urdma1"} 0
`
	var names []string
	for _, m := range regexp.MustCompile(`# TYPE (\S+)`).FindAllStringSubmatch(want, -1) {
		names = append(names, m[1])
	}
	if err := testutil.CollectAndCompare(NewCollector(always(sample(t))), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// TestCountersNeverFall: a queue pair that is removed while a snapshot is gathered is missing in both halves of the
// sums.
func TestCountersNeverFall(t *testing.T) {
	s := sample(t)
	c := NewCollector(func(context.Context) (*inspect.Snapshot, error) {
		v := *s
		return &v, nil
	})
	value := func() string {
		b, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, "urdma_retransmitted_segments_total")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := value()
	qps := s.QPs
	s.QPs = nil
	if got := value(); got != first {
		t.Errorf("fell from %s to %s", first, got)
	}
	s.QPs = qps
	s.QPs[0].Wire.Resent += 5
	if got := value(); !strings.Contains(got, "1215") {
		t.Errorf("does not go on: %s", got)
	}
}

func TestBusyRatio(t *testing.T) {
	var r ratio
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		after       time.Duration
		turns, busy uint64
		want        float64
	}{{0, 100, 50, 0.5}, {500 * time.Millisecond, 200, 150, 0.5}, {time.Second, 300, 50, 0},
		{3 * time.Second, 400, 150, 1}, {9 * time.Second, 400, 150, 0}} {
		s := &inspect.Snapshot{Taken: at.Add(c.after), Loop: &inspect.Loop{Turns: c.turns, BusyTurns: c.busy}}
		if got := r.of(s); got != c.want {
			t.Errorf("after %v: %v, expected %v", c.after, got, c.want)
		}
	}
}

func TestHTTP(t *testing.T) {
	s, failing := sample(t), error(nil)
	h := httptest.NewServer(Handler(func(context.Context) (*inspect.Snapshot, error) {
		v := *s
		return &v, failing
	}))
	defer h.Close()
	get := func(path string) (int, string) {
		r, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	if code, text := get("/metrics"); code != 200 || !strings.Contains(text, "urdma_clients 2\n") ||
		!strings.Contains(text, "go_goroutines") {
		t.Errorf("/metrics: %d\n%.300s", code, text)
	}
	if code, text := get("/"); code != 200 || !strings.Contains(text, "/metrics") {
		t.Errorf("/: %d %s", code, text)
	}
	if code, _ := get("/other"); code != 404 {
		t.Errorf("/other: %d", code)
	}
	failing = errors.New("the poll loop does not answer")
	if code, text := get("/metrics"); code != 500 || !strings.Contains(text, "does not answer") {
		t.Errorf("without a poll loop: %d %s", code, text)
	}
}
