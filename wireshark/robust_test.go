package wireshark

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/wire"
)

// views are the ways of showing a capture. None may cause an error, for which tshark searches the output.
var views = [][]string{{"-V"}, {"-q", "-z", "expert"}, {"-2", "-V", "-d", "udp.port==40001,trp"}}

// everyPacket is a connection with every kind of packet.
func everyPacket() []packet {
	packets := handshake()
	for _, k := range allKinds() {
		packets = append(packets, k.packet())
	}
	return packets
}

// shortened returns each packet at each length: sent with it, and cut to it by the capture. In short runs each packet has
// a third of the lengths, the next packet another third.
func shortened(packets []packet, byCapture bool) []packet {
	step := 3
	if os.Getenv("URDMA_LONG") != "" {
		step = 1
	}
	var all []packet
	for i, p := range packets {
		for n := i % step; n < min(len(p.payload), 120); n += step {
			q := p
			if byCapture {
				q.cut = n
			} else {
				q.payload, q.cut = p.payload[:n], n
			}
			all = append(all, q)
		}
	}
	return all
}

// TestShort: packets cut at each length, with and without the handshake, cause no error, and bytes missing in the
// capture are not reported as the sender's mistake.
func TestShort(t *testing.T) {
	for _, byCapture := range []bool{true, false} {
		packets := shortened(everyPacket(), byCapture)
		for _, first := range [][]packet{nil, handshake()} {
			path := writeCapture(t, byUrdma, slices.Concat(first, packets))
			for _, args := range views {
				out := tshark(t, path, args...)
				if byCapture && strings.Contains(out, "Malformed") {
					i := strings.Index(out, "Malformed")
					t.Errorf("%v: a cut packet is called malformed: %s", args, out[max(0, i-2000):i+100])
				}
			}
		}
	}
}

// TestRandom: random bytes, and good packets with some bytes changed, cause no error.
func TestRandom(t *testing.T) {
	r := newRand(t)
	n := 1000
	if os.Getenv("URDMA_LONG") != "" {
		n = 10000
	}
	packets := handshake()
	good := everyPacket()
	for range n {
		p := good[r.IntN(len(good))]
		b := randBytes(r, r.IntN(100))
		if r.IntN(4) > 0 {
			b = slices.Clone(p.payload[:min(len(p.payload), 120)])
			for range 1 + r.IntN(4) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
		} else if len(b) > 10 && r.IntN(2) > 0 {
			b[8] = byte(r.IntN(6))<<4 | b[8]&15 // an existing opcode
		}
		packets = append(packets, packet{p.from, p.to, b, r.IntN(200)})
	}
	path := writeCapture(t, byUrdma, packets)
	for _, args := range views {
		tshark(t, path, args...)
	}
}

// TestLong: a connection of many segments, acknowledged late, takes little time; so do an ACK and a sack for distant
// PSNs.
func TestLong(t *testing.T) {
	c := talk{packets: handshake()}
	for i := range uint32(5000) {
		c.r(i, 0, write(uint64(i), false)[:wire.TaggedLen])
		if i%64 == 63 {
			c.a(0, i, nil)
		}
	}
	c.a(0, 1<<30, nil)
	c.say(false, wire.TRP{Op: wire.OpSack}, 0, 1<<30,
		runs(wire.SackRun{First: isnR.Add(1<<30 + 1), End: isnR.Add(1<<31 - 1)}))
	rows := columns(t, writeCapture(t, byAnother, c.packets), []string{"trp.analysis.acked_in"}, "-2")
	if got := rows[2][0]; got != "67" {
		t.Errorf("the first segment is acknowledged in %q, want 67", got)
	}
}

// TestForgedSacks: sacks with as many runs as fit a datagram take no more time than others.
func TestForgedSacks(t *testing.T) {
	took := func(count int) time.Duration {
		c := talk{packets: handshake()}
		one := runs(wire.SackRun{First: isnR.Add(2), End: isnR.Add(4000)})
		for range 8 {
			c.say(false, wire.TRP{Op: wire.OpSack}, 0, 1, bytes.Repeat(one, count))
		}
		path, before := writeCapture(t, byUrdma, c.packets), childrenUsed(t)
		tshark(t, path, "-q", "-z", "expert")
		return childrenUsed(t) - before
	}
	few := took(32)
	if many := took(8000); many > 2*few+3*time.Second {
		t.Errorf("8 sacks of 8,000 runs took %v, of 32 runs %v", many, few)
	}
}

// childrenUsed returns the processor time of the children that have ended. It does not include waiting for a busy
// processor.
func childrenUsed(t *testing.T) time.Duration {
	t.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestForgedFarSacks: the same holds for runs as long as credits allow, between segments as far apart: for all runs
// of one packet together, PSNs are examined only as far as a window reaches.
func TestForgedFarSacks(t *testing.T) {
	c := talk{packets: handshake()}
	for _, at := range []uint32{0, 10, 1 << 19, 1 << 20} {
		c.r(at, 0, write(0, false)[:wire.TaggedLen])
	}
	near := wire.SackRun{First: isnR.Add(5), End: isnR.Add(15)}
	c.say(false, wire.TRP{Op: wire.OpSack}, 0, 1, runs(near, wire.SackRun{First: isnR.Add(20), End: isnR.Add(1<<19 - 1)},
		wire.SackRun{First: isnR.Add(1<<19 - 2), End: isnR.Add(1<<19 + 9)}))
	rows := columns(t, writeCapture(t, byUrdma, c.packets), []string{"trp.analysis.acked_in"}, "-2")
	for i, want := range map[int]string{3: "7", 4: "", 5: ""} {
		if got := rows[i][0]; got != want {
			t.Errorf("packet %d is acknowledged in %q, want %q", i+1, got, want)
		}
	}
}
