package trace

import (
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// Packet is what a PACKET event says of its frame. Numbers that it does not have are nil.
type Packet struct {
	Way      string  `json:"way,omitempty"` // in, out, or host: between programs of this urdmad, made up
	From     string  `json:"from,omitempty"`
	To       string  `json:"to,omitempty"`
	OtherQPN uint32  `json:"other_qpn,omitempty"` // of one between programs of this urdmad, its receiver; QPN is its sender
	Protocol string  `json:"protocol,omitempty"`  // TRP, RoCEv2, or the innermost of gopacket's names
	Message  string  `json:"message,omitempty"`   // the operation
	PSN      *uint32 `json:"psn,omitempty"`
	Ack      *uint32 `json:"ack,omitempty"`     // TRP: the next PSN that its sender expects
	Credits  *uint32 `json:"credits,omitempty"` // TRP: segments past Ack
	QP       *uint32 `json:"dest_qp,omitempty"` // of datagrams and RoCEv2
	STag     string  `json:"stag,omitempty"`    // or rkey
	Address  string  `json:"address,omitempty"` // or tagged offset
	MSN      *uint32 `json:"msn,omitempty"`     // of an untagged message
	Offset   *uint32 `json:"offset,omitempty"`  // in it
	Last     bool    `json:"last,omitempty"`    // of its message
	Syndrome string  `json:"syndrome,omitempty"`
	Note     string  `json:"note,omitempty"` // what urdmad made of it, if it did not simply take it
}

// packetOf takes a frame apart, of which body is what was kept.
func packetOf(r *abi.CaptureRecord, body, note []byte) *Packet {
	p := &Packet{Way: "host", OtherQPN: r.OtherQPN, Note: string(note)}
	switch r.Direction {
	case abi.CaptureIn:
		p.Way = "in"
	case abi.CaptureOut:
		p.Way = "out"
	}
	frame := gopacket.NewPacket(body, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	if n := frame.NetworkLayer(); n != nil {
		from, to := n.NetworkFlow().Endpoints()
		p.From, p.To = from.String(), to.String()
	}
	if t := frame.TransportLayer(); t != nil {
		from, to := t.TransportFlow().Endpoints()
		p.From, p.To, p.Protocol = p.From+"."+from.String(), p.To+"."+to.String(), t.LayerType().String()
		if udp, ok := t.(*layers.UDP); ok {
			p.datagram(udp)
		}
		return p
	}
	if all := frame.Layers(); len(all) > 0 {
		p.Protocol = all[len(all)-1].LayerType().String()
	}
	return p
}

// datagram reads the payload of UDP, which may be cut short.
func (p *Packet) datagram(udp *layers.UDP) {
	b := udp.Payload
	if udp.SrcPort == roce.Port || udp.DstPort == roce.Port {
		p.roce(b)
		return
	}
	op, ok := wire.PeekOp(b)
	switch {
	case !ok:
	case op == wire.OpDatagram:
		var d wire.Datagram
		if d.Parse(b) == nil {
			p.Protocol, p.Message, p.QP = "TRP", "datagram", numbered(d.Dst)
		}
	case op == wire.OpUC:
		var u wire.UC
		if _, err := u.Parse(b); err == nil {
			p.Protocol, p.Message, p.QP = "TRP", "uc", numbered(u.Dst)
		}
	default:
		p.trp(b, udp)
	}
}

// trp reads a packet of a connection.
func (p *Packet) trp(b []byte, udp *layers.UDP) {
	var t wire.TRP
	var d wire.DDP
	n, err := t.Parse(b)
	if err != nil {
		return
	}
	p.Protocol, p.Message, p.PSN, p.Ack, p.Credits = "TRP", t.Op.String(), numbered(t.PSN), numbered(t.Ack), &t.Credits
	switch {
	case t.Op != wire.OpData:
	case int(udp.Length) == wire.UDPLen+n:
		p.Message = "acknowledgement"
	default:
		if _, err := d.Parse(b[n:]); err == nil {
			p.segment(&d)
		}
	}
}

func (p *Packet) segment(d *wire.DDP) {
	p.Message, p.Last = d.Op.String(), d.Last
	if d.Tagged {
		p.STag, p.Address = fmt.Sprintf("%#x", uint32(d.STag)), fmt.Sprintf("%#x", d.TO)
		return
	}
	p.MSN, p.Offset = numbered(d.MSN), &d.MO
	if d.Op.Invalidates() {
		p.STag = fmt.Sprintf("%#x", uint32(d.STag))
	}
}

func (p *Packet) roce(b []byte) {
	var h roce.Header
	if _, err := h.Parse(b); err != nil {
		return
	}
	t := h.Opcode.Traits()
	p.Protocol, p.Message, p.PSN, p.QP, p.Last = "RoCEv2", h.Opcode.String(), numbered(h.PSN), numbered(h.Dst), t.Is(roce.Last)
	if h.RKey != 0 {
		p.STag, p.Address = fmt.Sprintf("%#x", uint32(h.RKey)), fmt.Sprintf("%#x", h.VA)
	}
	if t.Is(roce.Response) {
		p.Syndrome = fmt.Sprintf("%#x", uint8(h.AETH.Syndrome))
	}
}

func numbered[T ~uint32](n T) *uint32 {
	v := uint32(n)
	return &v
}

// String sums the packet up: its way, ends and message, and what urdmad made of it.
func (p *Packet) String() string {
	text := map[string]string{"in": "in ", "out": "out "}[p.Way]
	if p.From == "" {
		text += "frame"
	} else {
		text += p.From + " > " + p.To
	}
	if p.Message != "" {
		text += " " + p.Message
	}
	if p.Note != "" {
		text += ": " + p.Note
	}
	return text
}
