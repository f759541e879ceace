package trace

import (
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// Packet is the decoded frame of a PACKET event. Numbers that the packet lacks are nil.
type Packet struct {
	// in, out, or host: between programs of this urdmad, so there was no real packet
	Way  string `json:"way,omitempty"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// receiver of a packet between programs of this urdmad; QPN is the sender
	OtherQPN uint32  `json:"other_qpn,omitempty"`
	Protocol string  `json:"protocol,omitempty"` // TRP, RoCEv2, or gopacket's name of the innermost protocol
	Message  string  `json:"message,omitempty"`  // the operation
	PSN      *uint32 `json:"psn,omitempty"`
	Ack      *uint32 `json:"ack,omitempty"`     // TRP: the next PSN that the packet's sender expects
	Credits  *uint32 `json:"credits,omitempty"` // TRP: segments beyond Ack
	QP       *uint32 `json:"dest_qp,omitempty"` // in datagrams and RoCEv2
	STag     string  `json:"stag,omitempty"`    // or rkey
	Address  string  `json:"address,omitempty"` // or tagged offset
	MSN      *uint32 `json:"msn,omitempty"`     // of an untagged message
	Offset   *uint32 `json:"offset,omitempty"`  // offset in the message
	Last     bool    `json:"last,omitempty"`    // last packet of its message
	Syndrome string  `json:"syndrome,omitempty"`
	Note     string  `json:"note,omitempty"` // why urdmad did not simply accept the packet
}

// packetOf decodes a frame, of which body is the part that was captured.
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

// datagram decodes the payload of UDP, which may be truncated.
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

// trp decodes a packet of a connection.
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
	p.Protocol, p.Message, p.PSN, p.QP, p.Last = "RoCEv2", h.Opcode.String(), numbered(h.PSN), numbered(h.Dst),
		t.Is(roce.Last)
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

// String formats the packet in one line: direction, ends, message, and the note.
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
