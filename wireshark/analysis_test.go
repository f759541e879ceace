package wireshark

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"urdma/wire"
)

var update = flag.Bool("update", false, "write testdata anew")

// talk records packets between R and A.
type talk struct {
	packets []packet
}

// say adds a packet; PSN and ACK count from the ISNs.
func (c *talk) say(fromR bool, h wire.TRP, psn, ack uint32, body []byte) {
	if fromR {
		h.PSN, h.Ack, h.Cookie = isnR.Add(psn), isnA.Add(ack), cookieA
		c.packets = append(c.packets, whole(endR, endA, header(h, body)))
		return
	}
	h.PSN, h.Ack, h.Cookie = isnA.Add(psn), isnR.Add(ack), cookieR
	c.packets = append(c.packets, whole(endA, endR, header(h, body)))
}

func (c *talk) r(psn, ack uint32, body []byte) { c.say(true, wire.TRP{Credits: 256}, psn, ack, body) }
func (c *talk) a(psn, ack uint32, body []byte) { c.say(false, wire.TRP{Credits: 64}, psn, ack, body) }

func write(to uint64, last bool) []byte {
	return segment(wire.DDP{Tagged: true, Last: last, Op: wire.OpWrite, STag: 0xdeadbe00, TO: to}, make([]byte, 1024))
}

func send(msn wire.MSN, mo uint32, last bool) []byte {
	return segment(wire.DDP{Op: wire.OpSend, Last: last, MSN: msn, MO: mo}, make([]byte, 100))
}

// session is a connection in which nearly everything happens. R's PSNs wrap after two segments.
func session() []packet {
	h := handshake()
	c := talk{packets: []packet{h[0], h[0], h[1], h[1]}}
	c.r(0, 0, nil)
	c.r(0, 0, send(1, 0, false))
	c.r(1, 0, send(1, 100, true))
	c.a(0, 2, nil)
	read := wire.ReadRequest{SinkSTag: 0x77, SinkTO: 0x8899, Length: 4096, SrcSTag: 0xabcdef01, SrcTO: 0x7fff12345678}
	c.r(2, 0, segment(wire.DDP{Op: wire.OpReadRequest, Last: true, QN: 1, MSN: 1}, body(&read, 28)))
	c.a(0, 3, segment(wire.DDP{Tagged: true, Last: true, Op: wire.OpReadResponse, STag: 0x77, TO: 0x8899},
		make([]byte, 50)))
	atomic := wire.AtomicRequest{Opcode: wire.AtomicCmpSwap, RequestID: 9, STag: 0x42, TO: 0x1000}
	c.r(3, 1, segment(wire.DDP{Op: wire.OpAtomicRequest, Last: true, QN: 1, MSN: 2}, body(&atomic, 52)))
	c.a(1, 4, segment(wire.DDP{Op: wire.OpAtomicResponse, Last: true, QN: 3, MSN: 1},
		body(&wire.AtomicResponse{RequestID: 9, Original: 7}, 12)))
	c.r(4, 2, segment(wire.DDP{Op: wire.OpImmediate, Last: true, MSN: 2}, body(&wire.Immediate{0, 0, 0, 42}, 8)))
	c.r(5, 2, segment(wire.DDP{Op: wire.OpSendSEInv, Last: true, MSN: 3, STag: 0x1234}, []byte("hi")))

	// Of six Writes one is overtaken, one is lost and sent again; one of the acknowledgements arrives twice.
	c.r(6, 2, write(0, false))
	c.r(8, 2, write(2048, false))
	c.r(7, 2, write(1024, false))
	c.r(9, 2, write(3072, false))
	c.r(10, 2, write(4096, false))
	c.r(11, 2, write(5120, true))
	c.a(2, 9, nil)
	c.a(2, 9, nil)
	c.say(false, wire.TRP{Op: wire.OpSack, Credits: 64}, 2, 9, runs(wire.SackRun{First: isnR.Add(10), End: isnR.Add(12)}))
	c.say(true, wire.TRP{Credits: 256, Flags: wire.FlagAckRequested}, 9, 2, write(3072, false))
	c.say(false, wire.TRP{Credits: 0}, 2, 12, nil)
	c.say(true, wire.TRP{Credits: 256, Flags: wire.FlagAckRequested}, 12, 2, nil)
	c.a(2, 12, nil)

	// A Write to a wrong STag ends it.
	bad := segment(wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: 0xbad, TO: 0}, make([]byte, 10))
	c.r(12, 2, bad)
	forged := wire.TRP{Op: wire.OpFin, PSN: isnR.Add(13), Ack: isnA.Add(2), Cookie: 1}
	c.packets = append(c.packets, whole(endR, endA, header(forged, nil)))
	refusal := terminate(wire.Terminate{Code: wire.TermTaggedSTag, HasDDPLen: true, SegmentLen: 24,
		DDPHeader: bad[:wire.TaggedLen]})
	c.a(2, 12, segment(wire.DDP{Op: wire.OpTerminate, Last: true, QN: 2, MSN: 1}, refusal))
	c.say(false, wire.TRP{Op: wire.OpFin, Credits: 64}, 3, 12, nil)
	c.a(3, 12, write(0, true))
	c.say(true, wire.TRP{Op: wire.OpFin, Credits: 256}, 13, 3, nil)
	return c.packets
}

var analysisFields = []string{
	"frame.number", "udp.srcport", "_ws.col.Info", "trp.analysis.acked_in", "trp.analysis.acks", "trp.analysis.ack_rtt",
	"trp.analysis.retransmission_of", "trp.analysis.request_in", "trp.analysis.answer_in",
}

// TestSession: Wireshark's display is as in testdata/session.txt.
func TestSession(t *testing.T) {
	var b strings.Builder
	for _, row := range columns(t, writeCapture(t, byAnother, session()), analysisFields, "-2") {
		fmt.Fprintf(&b, "%2s %s %s\n", row[0], map[string]string{"40001": "R>", "50002": "A>"}[row[1]], row[2])
		for i, name := range analysisFields {
			if i > 2 && row[i] != "" {
				fmt.Fprintf(&b, "        %s %s\n", strings.TrimPrefix(name, "trp.analysis."), row[i])
			}
		}
	}
	const golden = "testdata/session.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("not %s; got\n%s", golden, b.String())
	}
}

// TestSummary: the list of packets, for which no fields are requested, with a filter that needs fields and without.
func TestSummary(t *testing.T) {
	path := writeCapture(t, byAnother, session())
	for _, passes := range [][]string{nil, {"-2"}} {
		if n := strings.Count(tshark(t, path, passes...), " TRP "); n != len(session()) {
			t.Errorf("%v: %d packets are TRP, want all", passes, n)
		}
		if n := strings.Count(tshark(t, path, append(passes, "-Y", "trp.analysis.acks and trp.credits == 64")...),
			"\n"); n != 5 {
			t.Errorf("%v: a filter finds %d packets, want 5", passes, n)
		}
		complain(t, path, passes...)
	}
}

// TestMarks: a filter can select each mark.
func TestMarks(t *testing.T) {
	path := writeCapture(t, byAnother, session())
	for filter, want := range map[string]string{
		"trp.analysis.retransmission": "2 4 24",
		"trp.analysis.out_of_order":   "17",
		"trp.analysis.gap":            "16",
		"trp.analysis.duplicate_ack":  "22",
		"trp.analysis.zero_credits":   "25",
		"trp.analysis.wrong_cookie":   "29",
		"trp.analysis.after_end":      "32",
		"trp.terminate":               "30",
		"trp.op == 5":                 "23",
		"trp.flags.ar == 1":           "24 26",
		"trp.term.code == 0x1100":     "30",
		"iwarp_rdma.opcode == 1":      "9",
		"trp.ddp.op == 8":             "13",
		"trp.malformed or trp.refused or trp.cut or _ws.malformed": "",
	} {
		var got []string
		for _, row := range columns(t, path, []string{"frame.number"}, "-Y", filter) {
			got = append(got, row[0])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: frames %v, want %s", filter, got, want)
		}
	}
}

// TestPasses: one pass, two passes, and two with a filter show the same conclusions from earlier packets.
func TestPasses(t *testing.T) {
	fields := []string{
		"frame.number", "_ws.col.Info", "trp.psn_rel", "trp.ack_rel", "trp.analysis.acks", "trp.analysis.ack_rtt",
		"trp.analysis.retransmission_of", "trp.analysis.request_in", "trp.analysis.dup_ack",
	}
	sessions := map[string][]packet{"whole": session(), "no handshake": session()[5:], "acks only": session()[20:23]}
	for name, packets := range sessions {
		for _, description := range []string{byUrdma, byAnother} {
			path := writeCapture(t, description, packets)
			once := columns(t, path, fields)
			for _, args := range [][]string{{"-2"}, {"-2", "-R", "udp"}} {
				again := columns(t, path, fields, args...)
				if !slices.EqualFunc(once, again, slices.Equal) {
					t.Errorf("%s, %s, %v:\n got %q\nwant %q", name, description, args, again, once)
				}
			}
		}
	}
}

// TestSecondConnection: a later connection with the same ports is another connection.
func TestSecondConnection(t *testing.T) {
	first, second := talk{packets: handshake()}, talk{packets: handshake()}
	first.r(0, 0, write(0, true))
	for i := range second.packets { // another ISN
		at := []int{3, 7}[i]
		second.packets[i].payload[at] -= 5
	}
	later := header(wire.TRP{PSN: isnR.Add(0) - 5, Ack: isnA, Credits: 3, Cookie: cookieA}, write(0, true))
	packets := slices.Concat(first.packets, second.packets, []packet{whole(endR, endA, later)})
	rows := columns(t, writeCapture(t, byAnother, packets), []string{"trp.psn_rel", "trp.analysis.retransmission_of"})
	for i, want := range map[int][]string{2: {"0", ""}, 5: {"0", ""}} {
		if !slices.Equal(rows[i], want) {
			t.Errorf("packet %d: got %q, want %q", i+1, rows[i], want)
		}
	}
}
