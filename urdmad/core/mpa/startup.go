package mpa

import (
	"bytes"

	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"
)

// Terms are the terms agreed on by request and reply.
type Terms struct {
	CRC       bool
	Long      bool // the peer takes FPDUs longer than a TCP segment
	Extended  bool // the peer is a urdmad; Extension is its offer
	Extension wire.TRPExtension
	copied    bool // the reply has our request's reserved flags, as replies of siw do
	emptyRTR  bool // the first FPDU may be a zero-length "ready to receive" Send that belongs to no message
	reads     bool // the first FPDU is a Read, even if the program accepts none
}

// Offer has our side's parameters for the start of a connection.
type Offer struct {
	IRD, ORD    uint16 // Reads that we accept at a time, Reads that we want outstanding
	PrivateData []byte
	CRC         bool // wanted, even if the peer doesn't ask for it
	Extension   wire.TRPExtension
}

// offerOf returns what a message from the connection manager offers for a connection of q.
func (c *Conn) offerOf(m *handshake.Message, q *qp.QP) Offer {
	e := wire.TRPExtension{QPN: wire.QPN(q.QPN), MaxSegment: maxSegment, RecvWindow: 1,
		Capabilities: rdmap.Capabilities(q)}
	return Offer{IRD: m.IRD, ORD: m.ORD, PrivateData: m.PrivateData, CRC: c.s.devices[c.Dev].CRC, Extension: e}
}

// defaultReads is the number of Reads of a peer with revision 1, which states none: siw's default.
const defaultReads = 16

// messageOf returns a request or a reply for the connection manager. In a request the bit that rejects has no meaning
// (RFC 5044 section 7.1.1).
func (c *Conn) messageOf(r *wire.MPA) *handshake.Message {
	m := &handshake.Message{Kind: handshake.Request, Dev: c.Dev, Local: c.Local, Peer: c.Peer, IRD: r.IRD, ORD: r.ORD,
		QPN: uint32(c.terms.Extension.QPN), PrivateData: r.PrivateData}
	if !r.Enhanced {
		m.IRD, m.ORD = defaultReads, defaultReads
	}
	switch {
	case r.Reply && r.Reject: // without a listener, TCP refuses the connection
		m.Kind, m.Reason = handshake.Reject, handshake.ByConsumer
	case r.Reply:
		m.Kind = handshake.Reply
	}
	return m
}

// request returns the request for a connection, of revision 2, as siw sends it.
func (o *Offer) request() wire.MPA {
	return wire.MPA{CRC: o.CRC, Long: true, Extension: true, Revision: 2, Enhanced: true, IRD: o.IRD, ORD: o.ORD,
		PrivateData: o.PrivateData}
}

// older returns the request to a peer that knows only revision 1 (RFC 5044).
func (o *Offer) older() wire.MPA {
	return wire.MPA{CRC: o.CRC, Revision: 1, PrivateData: o.PrivateData}
}

// knowsOlder reports whether a reply refuses the revision, rather than a program refusing us: it has
// revision 1 and no other content.
func knowsOlder(m *wire.MPA) bool {
	return m.Reject && m.Revision == 1 && !m.Enhanced && len(m.PrivateData) == 0
}

// acceptable returns the reason why a request can only be rejected; nil if there is none.
func acceptable(r *wire.MPA) error {
	switch {
	case r.Markers:
		return errMarkers
	case r.Revision == 0 || r.Revision > 2:
		return errRevision
	}
	return nil
}

// reply returns the reply to an acceptable request, and the terms.
func (o *Offer) reply(r *wire.MPA) (wire.MPA, Terms) {
	m := wire.MPA{Reply: true, CRC: o.CRC || r.CRC, Long: r.Long, Revision: r.Revision, PrivateData: o.PrivateData}
	t := Terms{CRC: m.CRC, Long: r.Long}
	if r.Enhanced {
		m.Enhanced, m.IRD, m.ORD = true, o.IRD, o.ORD
		m.PeerToPeer = r.PeerToPeer
		m.RTRWrite = r.PeerToPeer && r.RTRWrite
		m.RTRRead = r.PeerToPeer && r.RTRRead && !r.RTRWrite
		m.RTRSend = r.PeerToPeer && r.RTRSend && !r.RTRWrite && !r.RTRRead
		t.emptyRTR, t.reads = m.RTRSend, m.RTRRead
		if t.reads {
			m.IRD = max(m.IRD, 1)
		}
	}
	if r.Extension {
		m.Extension = true
		m.PrivateData = appendExtension(bytes.Clone(o.PrivateData), &o.Extension)
	}
	return m, t
}

// refuse returns the reply that rejects a request.
func refuse(r *wire.MPA, private []byte) wire.MPA {
	return wire.MPA{Reply: true, Reject: true, CRC: r.CRC, Revision: max(1, min(r.Revision, 2)), Enhanced: r.Enhanced,
		IRD: r.ORD, ORD: r.IRD, PrivateData: private}
}

// agree returns the terms on which a reply to our request opens the connection, and removes the extension
// from its private data.
func (o *Offer) agree(m *wire.MPA) Terms {
	t := Terms{CRC: o.CRC || m.CRC, Long: m.Long, copied: m.Extension}
	if private, ext, ok := cutExtension(m.PrivateData); ok && m.Extension {
		t.Extended, t.Extension, t.Long = true, ext, true
		m.PrivateData = private
	}
	return t
}

// The extension block of a urdmad is a magic number followed by the block of TRP's handshake (docs/WIRE.md
// chapter 3). The magic number distinguishes it from the private data of a peer that copies reserved flags
// into its reply, as siw does.
const extensionMagic = "\x00urdma\x01\xa5"

const extensionLen = len(extensionMagic) + wire.TRPExtensionLen

func appendExtension(b []byte, e *wire.TRPExtension) []byte {
	return e.Append(append(b, extensionMagic...))
}

// cutExtension removes the block from the end of private data.
func cutExtension(b []byte) (private []byte, e wire.TRPExtension, ok bool) {
	at := len(b) - extensionLen
	if at < 0 || string(b[at:at+len(extensionMagic)]) != extensionMagic {
		return b, e, false
	}
	if there, err := e.Parse(b[at+len(extensionMagic):]); !there || err != nil || e.Check() != nil {
		return b, e, false
	}
	return b[:at], e, true
}
