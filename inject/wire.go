package inject

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Wire says what happens to the packets of a port. Probabilities apply to each packet.
type Wire struct {
	Port      string
	In, Out   bool
	Peer      netip.Addr // address of the other end; not valid: any
	Loss      float64
	Burst     int // how many packets a loss drops; 0: 1
	Duplicate float64
	Corrupt   float64
	Reorder   float64       // probability that a packet is delayed by Late
	Late      time.Duration // 0: DefaultLate
	Delay     time.Duration // of each packet
	Jitter    time.Duration // largest additional delay; it keeps the order
	Rate      uint64        // bits per second; 0: no limit
	MTU       int           // drop longer IP packets; 0: none
	Cut       bool          // drop all packets
}

// DefaultLate lets some tens of packets overtake one.
const DefaultLate = 200 * time.Microsecond

const maxBurst = 1 << 20

// wire reads a wire statement.
func wire(words []string) (Rule, error) {
	r := Rule{Point: OnWire, Code: AnyCode, Seed: 1}
	w := &Wire{In: true, Out: true}
	r.Wire = w
	if len(words) < 2 {
		return r, errors.New("expected: wire PORT and what happens there: loss=, burst=, duplicate=, reorder=, late=, " +
			"delay=, jitter=, corrupt=, rate=, mtu= or partition")
	}
	w.Port = words[0]
	acts := false
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "seed", "for":
			if err := r.set(key, value); err != nil {
				return r, err
			}
			continue
		case "way", "peer", "late", "burst":
		default:
			acts = true
		}
		if err := w.set(word, key, value); err != nil {
			return r, err
		}
	}
	if !acts {
		return r, errors.New("it does not say what happens: loss=, duplicate=, reorder=, delay=, jitter=, corrupt=, " +
			"rate=, mtu= or partition")
	}
	return r, nil
}

func (w *Wire) set(word, key, value string) (err error) {
	var n uint64
	switch key {
	case "partition":
		w.Cut = true
		if word != key {
			err = fmt.Errorf("%q: partition has no value", word)
		}
	case "way":
		w.In, w.Out = value != "out", value != "in"
		if value != "in" && value != "out" && value != "both" {
			err = fmt.Errorf("way is %q, expected in, out or both", value)
		}
	case "peer":
		if w.Peer, err = netip.ParseAddr(value); err != nil {
			err = fmt.Errorf("peer is %q, expected an IP address", value)
		}
	case "loss":
		w.Loss, err = Probability(key, value)
	case "duplicate":
		w.Duplicate, err = Probability(key, value)
	case "corrupt":
		w.Corrupt, err = Probability(key, value)
	case "reorder":
		w.Reorder, err = Probability(key, value)
	case "burst":
		n, err = whole(key, value, 1, maxBurst)
		w.Burst = int(n)
	case "mtu":
		n, err = whole(key, value, 68, 65535)
		w.MTU = int(n)
	case "late":
		w.Late, err = duration(key, value, MaxDelay)
	case "delay":
		w.Delay, err = duration(key, value, MaxDelay)
	case "jitter":
		w.Jitter, err = duration(key, value, MaxDelay)
	case "rate":
		w.Rate, err = rate(value)
	default:
		err = fmt.Errorf("%q is no setting of wire", word)
	}
	return err
}

// rate reads bits per second: 10M, 1.5Gbit.
func rate(value string) (uint64, error) {
	text, scale := strings.TrimSuffix(value, "bit"), 1.0
	for suffix, by := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if short, ok := strings.CutSuffix(text, suffix); ok {
			text, scale = short, by
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f*scale >= 1e3 && f*scale <= 1e12) {
		return 0, fmt.Errorf("rate is %q, expected bits per second from 1k to 1000G, such as 10Mbit", value)
	}
	return uint64(f * scale), nil
}
