package mpa

import (
	"bytes"

	"urdma/wire"
)

// Terms are what request and reply have agreed on.
type Terms struct {
	CRC       bool
	Long      bool // the peer takes FPDUs longer than a TCP segment
	Extended  bool // the peer is a urdmad; Extension is what it offers
	Extension wire.TRPExtension
	copied    bool // the reply has our request's reserved flags, as siw's do
	swallow   bool // the first FPDU may be empty: a "ready to receive" of no message
	reads     bool // the first FPDU is a Read, whatever the program serves
}

// Offer is what our side brings to the start of a connection.
type Offer struct {
	IRD, ORD    uint16 // Reads we serve at once, Reads we want to have open
	PrivateData []byte
	CRC         bool // wanted, whatever the peer says
	Extension   wire.TRPExtension
}

// request is the request that asks for a connection. Of revision 2, like siw's.
func (o *Offer) request() wire.MPA {
	return wire.MPA{CRC: o.CRC, Long: true, Extension: true, Revision: 2, Enhanced: true, IRD: o.IRD, ORD: o.ORD,
		PrivateData: o.PrivateData}
}

// older is the request to a peer that knows revision 1 alone, as RFC 5044 has it.
func (o *Offer) older() wire.MPA {
	return wire.MPA{CRC: o.CRC, Revision: 1, PrivateData: o.PrivateData}
}

// knowsOlder reports a reply by which a peer refuses the revision, not the program us: it
// is of revision 1 and says nothing else.
func knowsOlder(m *wire.MPA) bool {
	return m.Reject && m.Revision == 1 && !m.Enhanced && len(m.PrivateData) == 0
}

// acceptable says why a request can't be answered by more than a reject; nil if it can.
func acceptable(r *wire.MPA) error {
	switch {
	case r.Markers:
		return errMarkers
	case r.Revision == 0 || r.Revision > 2:
		return errRevision
	}
	return nil
}

// reply answers a request, which is acceptable, and says on which terms.
func (o *Offer) reply(r *wire.MPA) (wire.MPA, Terms) {
	m := wire.MPA{Reply: true, CRC: o.CRC || r.CRC, Long: r.Long, Revision: r.Revision, PrivateData: o.PrivateData}
	t := Terms{CRC: m.CRC, Long: r.Long}
	if r.Enhanced {
		m.Enhanced, m.IRD, m.ORD = true, o.IRD, o.ORD
		m.PeerToPeer = r.PeerToPeer
		m.RTRWrite = r.PeerToPeer && r.RTRWrite
		m.RTRRead = r.PeerToPeer && r.RTRRead && !r.RTRWrite
		m.RTRSend = r.PeerToPeer && r.RTRSend && !r.RTRWrite && !r.RTRRead
		t.swallow, t.reads = m.RTRSend, m.RTRRead
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

// refuse is the reply that rejects a request.
func refuse(r *wire.MPA, private []byte) wire.MPA {
	return wire.MPA{Reply: true, Reject: true, CRC: r.CRC, Revision: max(1, min(r.Revision, 2)), Enhanced: r.Enhanced,
		IRD: r.ORD, ORD: r.IRD, PrivateData: private}
}

// agree says on which terms a reply to our request opens the connection, and takes the
// extension out of its private data.
func (o *Offer) agree(m *wire.MPA) Terms {
	t := Terms{CRC: o.CRC || m.CRC, Long: m.Long, copied: m.Extension}
	if private, ext, ok := cutExtension(m.PrivateData); ok && m.Extension {
		t.Extended, t.Extension, t.Long = true, ext, true
		m.PrivateData = private
	}
	return t
}

// The extension block of a urdmad: a magic number, which tells it from the private data
// of a peer that copies reserved flags into its reply as siw does, and the block of
// TRP's handshake (docs/WIRE.md chapter 3).
const extensionMagic = "\x00urdma\x01\xa5"

const extensionLen = len(extensionMagic) + wire.TRPExtensionLen

func appendExtension(b []byte, e *wire.TRPExtension) []byte {
	return e.Append(append(b, extensionMagic...))
}

// cutExtension takes the block off the end of private data.
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
