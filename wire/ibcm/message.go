package ibcm

import (
	"encoding/binary"
	"errors"

	"urdma/wire"
	"urdma/wire/roce"
)

// Kind is a message's attribute ID.
type Kind uint16

// Kinds of messages.
const (
	REQ         Kind = 0x10 // requests a connection
	MRA         Kind = 0x11 // the request has arrived, the reply will take time
	REJ         Kind = 0x12
	REP         Kind = 0x13 // accepts
	RTU         Kind = 0x14 // the reply has arrived
	DREQ        Kind = 0x15 // ends a connection
	DREP        Kind = 0x16
	SIDRRequest Kind = 0x17 // requests the queue pair of a service; Local is the request ID
	SIDRReply   Kind = 0x18
	LAP         Kind = 0x19 // requests an alternate path
	APR         Kind = 0x1a // replies to LAP, with Status
)

// AlternateUnsupported is the status of an APR that refuses an alternate path (InfiniBand vol. 1).
const AlternateUnsupported = 2

// Reason says why a request or a reply was rejected (InfiniBand vol. 1).
type Reason uint16

// Reasons of a REJ.
const (
	NoResources      Reason = 3
	TimedOut         Reason = 4
	Unsupported      Reason = 5
	InvalidCommID    Reason = 6
	InvalidService   Reason = 8
	InvalidTransport Reason = 9
	StaleConnection  Reason = 10
	InvalidMTU       Reason = 26
	ConsumerDefined  Reason = 28
)

// Refused says which message a REJ rejects (InfiniBand vol. 1).
type Refused uint8

// Messages that a REJ can reject. RefusedNone: the sender of the REJ gives up its own request.
const (
	RefusedREQ Refused = iota
	RefusedREP
	RefusedNone
)

const (
	// Len is the length of every message.
	Len = 256
	// QKey is the Q_Key of queue pair QP.
	QKey = 0x80010000
	// QP is the queue pair number that messages are sent to.
	QP = wire.QPN(1)

	// MaxReply and MaxReject are the sizes of the private data of a REP and a REJ.
	MaxReply  = replyPrivate
	MaxReject = rejectPrivate

	headerLen      = 24
	requestPrivate = 92
	rejectPrivate  = 148
	replyPrivate   = 196
	guidLen        = 8 // additional information of a REJ
)

// Message is a communication management message. Its kind says which fields are valid.
type Message struct {
	Kind   Kind
	TID    uint64 // the same in repetitions and in the reply
	Local  uint32 // communication ID of the sender
	Remote uint32 // communication ID of the receiver; 0 in a REQ

	// REQ and REP.
	QPN       wire.QPN // of the sender; in a DREQ of the receiver
	Target    wire.QPN // REP of XRC: the target's queue pair number
	PSN       roce.PSN // starting PSN of requests to the sender of the message
	Responder uint8    // Reads and atomics that the sender serves at once
	Initiator uint8    // Reads and atomics that the sender wants to have outstanding
	RNRRetry  uint8    // for the receiver's queue pair
	SRQ       bool
	GUID      uint64

	// REQ.
	Service    ServiceID
	Transport  uint8 // 0: reliable connection; XRC
	PKey       uint16
	PathMTU    uint8    // as enum ibv_mtu
	Retries    uint8    // for the receiver's queue pair
	AckTimeout uint8    // for the receiver's queue pair
	Src, Dst   [16]byte // GIDs
	HopLimit   uint8
	// TrafficClass is the traffic class of the connection's packets.
	TrafficClass uint8

	Reason  Reason // REJ; with TimedOut, GUID is the sender's
	Refused Refused
	Timeout uint8  // MRA: how long the reply may take, 4.096 µs times two to this power
	Status  uint8  // SIDRReply: 0 if QPN and QKey are valid; APR
	QKey    uint32 // SIDRReply

	Private []byte // REQ, REP, REJ, SIDRRequest, SIDRReply: as long as the field; after Parse it aliases the input
}

// Errors of messages.
var (
	ErrShort   = errors.New("ibcm: management datagram shorter than 256 bytes")
	ErrClass   = errors.New("ibcm: management datagram of another class or version, or no Send")
	ErrKind    = errors.New("ibcm: message of a kind that is not supported")
	ErrPrivate = errors.New("ibcm: private data longer than its field")
)

// XRC is the Transport of a request for an extended reliable connection (annex A14): the service type, and above it
// the extended type.
const XRC = 3 | 1<<2

const (
	class        = 7
	classVersion = 2
	methodSend   = 3
	// responseTimeout allows 4.3 s for a reply.
	responseTimeout = 20
)

// Parse reads a message.
func (m *Message) Parse(b []byte) error {
	switch {
	case len(b) < Len:
		return ErrShort
	case b[0] != 1 || b[1] != class || b[2] != classVersion || b[3] != methodSend:
		return ErrClass
	}
	*m = Message{Kind: Kind(binary.BigEndian.Uint16(b[16:])), TID: binary.BigEndian.Uint64(b[8:])}
	b = b[headerLen:Len]
	m.Local, m.Remote = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	switch m.Kind {
	case REQ:
		m.Remote = 0
		m.parseRequest(b)
	case REP:
		m.QPN, m.Target, m.PSN = wire.QPN(word24(b[12:])), wire.QPN(word24(b[16:])), roce.PSN(word24(b[20:]))
		m.Responder, m.Initiator = b[24], b[25]
		m.RNRRetry, m.SRQ = b[27]>>5, b[27]&0x10 != 0
		m.GUID = binary.BigEndian.Uint64(b[28:])
		m.Private = b[36:]
	case REJ:
		m.Refused, m.Reason = Refused(b[8]>>6), Reason(binary.BigEndian.Uint16(b[10:]))
		if m.Reason == TimedOut && b[9]>>1 >= guidLen {
			m.GUID = binary.BigEndian.Uint64(b[12:])
		}
		m.Private = b[84:]
	case MRA:
		m.Timeout = b[9] >> 3
	case DREQ:
		m.QPN = wire.QPN(word24(b[8:]))
	case RTU, DREP, LAP:
	case APR:
		m.Status = b[9]
	case SIDRRequest, SIDRReply:
		m.Remote = 0
		if m.Kind == SIDRReply {
			m.Status, m.QPN, m.Service = b[4], wire.QPN(word24(b[8:])), ServiceID(binary.BigEndian.Uint64(b[12:]))
			m.QKey, m.Private = binary.BigEndian.Uint32(b[20:]), b[96:]
			break
		}
		m.PKey, m.Service, m.Private = binary.BigEndian.Uint16(b[4:]), ServiceID(binary.BigEndian.Uint64(b[8:])), b[16:]
	default:
		return ErrKind
	}
	return nil
}

func (m *Message) parseRequest(b []byte) {
	m.Service = ServiceID(binary.BigEndian.Uint64(b[8:]))
	m.GUID = binary.BigEndian.Uint64(b[16:])
	m.QPN, m.Responder = wire.QPN(word24(b[32:])), b[35]
	m.Initiator = b[39]
	if m.Transport = b[43] >> 1 & 3; m.Transport == XRC&3 {
		m.Transport |= b[51] & 7 << 2
	}
	m.PSN, m.Retries = roce.PSN(word24(b[44:])), b[47]&7
	m.PKey = binary.BigEndian.Uint16(b[48:])
	m.PathMTU, m.RNRRetry = b[50]>>4, b[50]&7
	m.SRQ = b[51]&8 != 0
	m.Src, m.Dst = [16]byte(b[56:]), [16]byte(b[72:])
	m.TrafficClass, m.HopLimit = b[92], b[93]
	m.AckTimeout = b[95] >> 3
	m.Private = b[140:]
}

func word24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// put24 writes v into the upper three bytes of a word and last into the lowest.
func put24(b []byte, v uint32, last uint8) { binary.BigEndian.PutUint32(b, v<<8|uint32(last)) }

// Put writes a message of Len bytes.
func (m *Message) Put(b []byte) error {
	b = b[:Len]
	clear(b)
	b[0], b[1], b[2], b[3] = 1, class, classVersion, methodSend
	binary.BigEndian.PutUint64(b[8:], m.TID)
	binary.BigEndian.PutUint16(b[16:], uint16(m.Kind))
	b = b[headerLen:]
	binary.BigEndian.PutUint32(b, m.Local)
	binary.BigEndian.PutUint32(b[4:], m.Remote)
	switch m.Kind {
	case REQ:
		m.putRequest(b)
		return putPrivate(b[140:], m.Private)
	case REP:
		put24(b[12:], uint32(m.QPN), 0)
		put24(b[16:], uint32(m.Target), 0)
		put24(b[20:], uint32(m.PSN), 0)
		b[24], b[25] = m.Responder, m.Initiator
		b[27] = m.RNRRetry<<5 | flag(m.SRQ, 0x10)
		binary.BigEndian.PutUint64(b[28:], m.GUID)
		return putPrivate(b[36:], m.Private)
	case REJ:
		b[8] = uint8(m.Refused) << 6
		binary.BigEndian.PutUint16(b[10:], uint16(m.Reason))
		if m.Reason == TimedOut {
			b[9] = guidLen << 1
			binary.BigEndian.PutUint64(b[12:], m.GUID)
		}
		return putPrivate(b[84:], m.Private)
	case MRA:
		b[9] = m.Timeout << 3
	case DREQ:
		put24(b[8:], uint32(m.QPN), 0)
	case APR:
		b[9] = m.Status
	case SIDRRequest:
		binary.BigEndian.PutUint32(b[4:], uint32(m.PKey)<<16)
		binary.BigEndian.PutUint64(b[8:], uint64(m.Service))
		return putPrivate(b[16:], m.Private)
	case SIDRReply:
		b[4] = m.Status
		put24(b[8:], uint32(m.QPN), 0)
		binary.BigEndian.PutUint64(b[12:], uint64(m.Service))
		binary.BigEndian.PutUint32(b[20:], m.QKey)
		return putPrivate(b[96:], m.Private)
	}
	return nil
}

func (m *Message) putRequest(b []byte) {
	binary.BigEndian.PutUint64(b[8:], uint64(m.Service))
	binary.BigEndian.PutUint64(b[16:], m.GUID)
	put24(b[32:], uint32(m.QPN), m.Responder)
	b[39] = m.Initiator
	b[43] = responseTimeout<<3 | m.Transport&3<<1
	put24(b[44:], uint32(m.PSN), responseTimeout<<3|m.Retries&7)
	binary.BigEndian.PutUint16(b[48:], m.PKey)
	b[50], b[51] = m.PathMTU<<4|m.RNRRetry&7, 15<<4|flag(m.SRQ, 8)|m.Transport>>2
	binary.BigEndian.PutUint32(b[52:], 0xffffffff) // no LIDs
	copy(b[56:], m.Src[:])
	copy(b[72:], m.Dst[:])
	b[92], b[93], b[95] = m.TrafficClass, m.HopLimit, m.AckTimeout<<3
}

func flag(set bool, bit uint8) uint8 {
	if set {
		return bit
	}
	return 0
}

func putPrivate(b, private []byte) error {
	if copy(b, private) < len(private) {
		return ErrPrivate
	}
	return nil
}
