package inject

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	one := func(r Rule) []Statement { return []Statement{{Verb: Apply, Rule: r, Event: EventNone}} }
	for text, want := range map[string][]Statement{
		"send status=REM_ACCESS_ERR": one(Rule{Point: Send, Code: AnyCode, Seed: 1, Count: 1, Status: 10}),
		"send  status=ibv_wc_fatal_err opcode=RDMA_WRITE qp=0x7e nth=3 count=2": one(
			Rule{Point: Send, Seed: 1, Count: 2, Nth: 3, QPN: 0x7e, Status: 19}),
		"receive status=LOC_PROT_ERR p=10% seed=7": one(Rule{Point: Receive, Code: AnyCode, Seed: 7, P: 0.1, Status: 4}),
		"respond answer=rnr count=all for=20ms": one(Rule{Point: Respond, Code: AnyCode, Seed: 1,
			For: 20 * time.Millisecond, Answer: NotReady}),
		"respond answer=access opcode=RDMA_READ": one(Rule{Point: Respond, Code: MessageRead, Seed: 1, Count: 1,
			Answer: Access}),
		"call ibv_reg_mr errno=ENOMEM pid=4711": one(Rule{Point: Call, Code: AnyCode, Function: "ibv_reg_mr", Seed: 1,
			Count: 1, PID: 4711, Errno: syscall.ENOMEM}),
		"call delay=1s": one(Rule{Point: Call, Code: AnyCode, Seed: 1, Count: 1,
			Delay: time.Second}),
		"call ibv_post_send errno=ENOMEM": one(Rule{Point: Post, Code: AnyCode, Function: "ibv_post_send", Seed: 1,
			Count: 1, Errno: syscall.ENOMEM}),
		"send status=FATAL_ERR bytes=1MiB qp=7e": one(Rule{Point: Send, Code: AnyCode, Seed: 1, Count: 1, Bytes: 1 << 20,
			QPN: 0x7e, Status: 19}),
		"hits 3":    {{Verb: Hits, Event: EventNone, Number: 3}},
		"cm reject": one(Rule{Point: CM, Code: 4, Seed: 1, Count: 1, Answer: Reject}),
		"cm delay=5ms type=ESTABLISHED": one(Rule{Point: CM, Code: 9, Seed: 1, Count: 1,
			Delay: 5 * time.Millisecond}),
		"event delay=5ms": one(Rule{Point: Notify, Code: AnyCode, Seed: 1, Count: 1,
			Delay: 5 * time.Millisecond}),
		"qp 7e # comment":          {{Verb: Raise, Object: "qp", ID: "7e", Event: 1}},
		"qp 7e IBV_EVENT_COMM_EST": {{Verb: Raise, Object: "qp", ID: "7e", Event: 4}},
		"cq 5 event pid=3": {{Verb: Raise, Object: "cq", ID: "5", Event: EventNone,
			Rule: Rule{PID: 3}}},
		"port urdma0 down; wait 200ms\nport urdma0 up\n\nclear 3": {{Verb: Raise, Object: "link", ID: "urdma0", Event: 10},
			{Verb: Pause, Event: EventNone, Wait: 200 * time.Millisecond}, {Verb: Raise, Object: "link", ID: "urdma0", Event: 9},
			{Verb: Clear, Event: EventNone, Number: 3}},
		"after send opcode=RDMA_WRITE nth=3; device x": {
			{Verb: After, Event: EventNone, Rule: Rule{Point: Send, Seed: 1, Count: 1, Nth: 3}},
			{Verb: Raise, Object: "device", ID: "x", Event: 8}},
		"wire urdma0 loss=1% burst=3 way=out peer=10.2.0.7 rate=1.5Mbit seed=7 for=1s": one(Rule{Point: OnWire, Code: AnyCode,
			Seed: 7, For: time.Second,
			Wire: &Wire{Port: "urdma0", Out: true, Peer: netip.MustParseAddr("10.2.0.7"), Loss: 0.01, Burst: 3, Rate: 1500000}}),
		"errors switch1/3 symbol_error=5 VL15_dropped symbol_error": {{Verb: Errors, Event: EventNone, At: "switch1/3",
			Errors: [12]uint64{0: 6, 11: 1}}},
		"wire urdma0 partition": one(Rule{Point: OnWire, Code: AnyCode, Seed: 1,
			Wire: &Wire{Port: "urdma0", In: true, Out: true, Cut: true}}),
	} {
		got, err := Parse(text)
		for i := range got {
			got[i].Text = ""
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v\nexpected %+v", text, got, err, want)
		}
	}
}

// TestParseRefuses: errors name the wrong word, and what is allowed.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                        "no statement",
		" # only a comment":                       "no statement",
		"sand status=FATAL_ERR":                   `"sand" is no statement`,
		"send":                                    "does not say what happens",
		"send status=NOPE":                        "LOC_LEN_ERR",
		"send status=SUCCESS":                     "does not say what happens",
		"send errno=ENOMEM":                       "errno does not belong",
		"send status":                             "KEY=VALUE",
		"send status=FATAL_ERR p=2":               "probability",
		"send status=FATAL_ERR p=NaN":             "probability",
		"send status=FATAL_ERR nth=0":             "1 to",
		"send status=FATAL_ERR qp=xyz":            "hexadecimal",
		"send status=FATAL_ERR x=1":               `"x" is no setting`,
		"send status=FATAL_ERR bytes=0":           "bytes from 1",
		"send status=FATAL_ERR bytes=1MB":         "such as 1MiB",
		"send status=FATAL_ERR bytes=1GiB nth=2":  "expected one of them",
		"receive status=FATAL_ERR bytes=1GiB":     "bytes belongs to send",
		"hits":                                    "hits NUMBER",
		"hits 0":                                  "1 to",
		"hits 1; clear":                           "alone",
		"call errno=ENOMEM":                       "which call",
		"call ibv_reg_mr":                         "does not say what happens",
		"call ibv_reg_mr errno=ENOTHING":          "errno(3)",
		"call ibv_poll_cq errno=ENOMEM":           "ibv_reg_mr",
		"call ibv_reg_mr delay=-1s":               "a time",
		"call ibv_reg_mr delay=2h":                "a time",
		"call ibv_reg_mr delay=1s qp=7e":          "qp belongs",
		"respond answer=rnr opcode=RDMA_WRITE":    "does not answer",
		"respond answer=access opcode=SEND":       "does not answer",
		"after send status=FATAL_ERR":             "says when",
		"after":                                   "expected: after",
		"after call ibv_post_send":                "cannot wait",
		"wait":                                    "wait TIME",
		"wait soon":                               "a time",
		"qp":                                      "expected: qp",
		"qp 7e CQ_ERR":                            "QP_FATAL",
		"port urdma0 sideways":                    "PORT_ERR",
		"wire":                                    "expected: wire",
		"wire urdma0 way=out":                     "does not say what happens",
		"wire urdma0 rate=1":                      "bits per second",
		"wire urdma0 way=up":                      "in, out or both",
		"wire urdma0 peer=host":                   "IP address",
		"wire urdma0 mtu=1":                       "68 to",
		"wire urdma0 partition=1":                 "no value",
		"wire urdma0 status=1":                    "no setting of wire",
		"after wire urdma0":                       "no statement",
		"errors switch1/3":                        "expected: errors PORT",
		"errors switch1/3 symbol_errors":          "symbol_error, link_error_recovery",
		"errors switch1/3 symbol_error=0":         "1 to",
		"clear x":                                 "clear",
		"clear 1 2":                               "clear",
		"send status=FATAL_ERR\nsend status=NOPE": "line 2",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, expected one with %q", text, got, err, want)
		}
	}
}

func hits(r Rule, n int) (at []int) {
	d := NewDraw(r)
	for i := range n {
		if d.Next(1000) {
			at = append(at, i+1)
		}
	}
	return at
}

// TestDraw: which events a rule hits.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want []int
	}{
		{Rule{Count: 1}, []int{1}},
		{Rule{Nth: 3, Count: 1}, []int{3}},
		{Rule{Nth: 3, Count: 2}, []int{3, 4}},
		{Rule{Nth: 4}, []int{4, 5}},
		{Rule{Bytes: 1999, Count: 1}, []int{2}},
		{Rule{Bytes: 2000}, []int{3, 4, 5}},
		{Rule{P: 1}, []int{1, 2, 3, 4, 5}},
		{Rule{P: 1, Count: 2}, []int{1, 2}},
	} {
		if got := hits(c.rule, 5); !slices.Equal(got, c.want) {
			t.Errorf("%+v hits %v, expected %v", c.rule, got, c.want)
		}
	}
}

// TestSeed: the same seed gives the same hits, another seed others, and their number fits the probability.
func TestSeed(t *testing.T) {
	const n = 10000
	a, b, c := hits(Rule{P: 0.1, Seed: 1}, n), hits(Rule{P: 0.1, Seed: 1}, n), hits(Rule{P: 0.1, Seed: 2}, n)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("seed 1 hits %v and %v, seed 2 %v", a[:10], b[:10], c[:10])
	}
	if len(a) < n/20 || len(a) > n/5 {
		t.Errorf("%d of %d hit with a probability of 0.1", len(a), n)
	}
}

// FuzzParse: any text gives statements or an error, never a panic.
func FuzzParse(f *testing.F) {
	f.Add("send status=FATAL_ERR p=10%; wait 1s\nafter cm type=REJECTED\nqp 7e")
	f.Fuzz(func(t *testing.T, text string) {
		if all, err := Parse(text); err == nil && len(all) == 0 {
			t.Errorf("%q: neither statements nor an error", text)
		}
	})
}
