package report

import (
	"fmt"
	"strconv"
	"strings"

	"urdma/inspect"
)

func number(n uint64) string   { return strconv.FormatUint(n, 10) }
func handle(n uint32) string   { return strconv.FormatUint(uint64(n), 10) }
func fill(n, depth int) string { return fmt.Sprintf("%d/%d", n, depth) }

func qpn(n uint32) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%06x", n)
}

func pid(n int) string {
	if n == 0 {
		return "-" // in a PID namespace that urdmad can't see
	}
	return strconv.Itoa(n)
}

func link(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

func cqState(overrun bool) string {
	if overrun {
		return "OVERRUN"
	}
	return "OK"
}

func placed(n int, bytes uint64) string { return fmt.Sprintf("%d:%s", n, Bytes(bytes)) }

func command(c *inspect.Client) string {
	if c.Line != "" {
		return c.Line
	}
	return dash(c.Command)
}

func orAll(device string) string {
	if device == "" {
		return "all"
	}
	return device
}

// access writes enum ibv_access_flags: l w r a z for local write, remote write,
// remote read, remote atomic, zero based.
func access(flags uint32) string {
	var b strings.Builder
	for _, f := range [...]struct {
		bit    uint32
		letter byte
	}{{1, 'l'}, {2, 'w'}, {4, 'r'}, {8, 'a'}, {16, 'b'}, {32, 'z'}} {
		if flags&f.bit != 0 {
			b.WriteByte(f.letter)
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// window shows segments in flight and the congestion window. pathMTU is the path MTU as far as it is known.
func pathMTU(w *inspect.Wire) string {
	if w == nil || w.PathMTU == 0 {
		return "-"
	}
	return strconv.Itoa(w.PathMTU)
}

func window(w *inspect.Wire) string {
	if w == nil {
		return "-"
	}
	return fill(w.InFlight, w.Window)
}

func rtt(w *inspect.Wire) string {
	if w == nil {
		return "-"
	}
	return Duration(w.RTTNs)
}

func resent(w *inspect.Wire) string {
	if w == nil {
		return "-"
	}
	return number(w.Resent)
}
