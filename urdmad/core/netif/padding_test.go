package netif

import (
	"bytes"
	"testing"

	"urdma/dpdk/port"
	"urdma/wire"
)

// TestStretch: a datagram that must be fragmented is padded to the length from which on the kernel
// fragments, and arrives unchanged; if the kernel fragments any datagram, it is not padded.
func TestStretch(t *testing.T) {
	const from, length = 1460, 1452
	for _, c := range []struct {
		name   string
		from   int
		length int
		want   int
	}{
		{"longest", from, length, from},
		{"shorter", from, 1253, from},
		{"kernel that fragments anything", 0, length, length},
		{"no room for padding", length + 1, length, length},
	} {
		p := &Path{n: &Interface{info: port.Info{FragmentFrom: c.from}}}
		frame := make([]byte, length, from)
		for i := range frame[:c.length] {
			frame[i] = byte(i)
		}
		(&wire.Encap{Type: wire.EncapTRP}).Put(frame)
		before := bytes.Clone(frame[:c.length])
		n := p.stretch(frame, c.length)
		if n != c.want {
			t.Errorf("%s: %d bytes, expected %d", c.name, n, c.want)
		}
		sent := frame[:n]
		var h wire.Encap
		if err := h.Parse(sent); err != nil || (h.Type == wire.EncapPadded) != (n > c.length) {
			t.Errorf("%s: header %+v, %v", c.name, h, err)
		}
		data := sent[wire.EncapLen:]
		if h.Type == wire.EncapPadded {
			data, _ = wire.Unpad(data)
		}
		if !bytes.Equal(data, before[wire.EncapLen:]) {
			t.Errorf("%s: another datagram", c.name)
		}
	}
}
