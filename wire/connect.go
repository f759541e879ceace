package wire

import "encoding/binary"

const (
	// ConnectLen is the length of a body without private data: its length, IRD
	// and ORD.
	ConnectLen = 6

	// MaxPrivateData is the most private data a request, accept or reject
	// carries, as in MPA (RFC 5044 section 7.1).
	MaxPrivateData = 512

	extensionMagic   = 0x7552
	extensionVersion = 1
	// TRPExtensionLen is the length of an extension block of version 1,
	// TRPTokenLen of one that has a retry's token, TRPByNumberLen of one that connects by
	// queue pair number.
	TRPExtensionLen = 20
	TRPTokenLen     = 32
	TRPByNumberLen  = 36

	// MinMaxSegment is the smallest segment a peer must take (RFC 5041
	// section 5.1 has 128 for the lower layer's MULPDU).
	MinMaxSegment = 128
)

// Capabilities: messages that their sender takes and not every peer knows
// (docs/WIRE.md chapter 3).
const (
	CapImmediate uint32 = 1 << 0 // Immediate Data, behind a Write or a Send
	CapAtomic    uint32 = 1 << 1 // Atomic Request
	CapXRC       uint32 = 1 << 2 // the sender's queue pair is an XRC target: see docs/WIRE.md
	CapRetry     uint32 = 1 << 3 // the retry of the handshake
	CapPadding   uint32 = 1 << 4 // datagrams with padding, between UDP sockets
	CapCredits   uint32 = 1 << 5 // credits of 20 bits
)

// TRPExtension is the block with which a peer says, after its private data,
// that it speaks our extensions. All values are its sender's own.
type TRPExtension struct {
	Cookie       uint32 // every later packet to this peer carries it
	QPN          QPN
	MaxSegment   uint16 // largest DDP segment it takes, DDP header included, bytes
	RecvWindow   uint16 // segments it holds from the start
	Capabilities uint32 // CapImmediate and so on

	// Of a connection by queue pair number (docs/WIRE.md chapter 9).
	Target      QPN    // the queue pair it is for; 0: the block is not that of such a connection
	Echo        uint32 // the peer's cookie as last heard, 0 for none; else a retry's token (chapter 3)
	MinRNRTimer uint8  // of the sender's queue pair
	PathMTU     uint8  // of that, enum ibv_mtu; 0: its sender does not say it, nor RQPSN
	RQPSN       PSN    // of that
}

// ByNumber reports a block that connects by queue pair number.
func (e *TRPExtension) ByNumber() bool { return e.Target != 0 }

func (e *TRPExtension) len() int {
	switch {
	case e.ByNumber():
		return TRPByNumberLen
	case e.Echo != 0:
		return TRPTokenLen
	}
	return TRPExtensionLen
}

// Check reports values with which no connection could work.
func (e *TRPExtension) Check() error {
	if e.MaxSegment < MinMaxSegment {
		return ErrExtensionSegment
	}
	if e.RecvWindow == 0 || e.RecvWindow > MaxCredits {
		return ErrExtensionWindow
	}
	return nil
}

// TRPConnect is the body of a request, accept or reject, after the base header.
type TRPConnect struct {
	IRD         uint16 // inbound RDMA Reads its sender will serve at once
	ORD         uint16 // outbound RDMA Reads its sender wants to have open
	PrivateData []byte // aliases the input after Parse; at most MaxPrivateData
	Ext         TRPExtension
	HasExt      bool
	Padding     int // bytes of 0 at the end; 0 after Parse
}

// Parse reads b, the whole body. What follows the private data and isn't an
// extension block of a version we know is ignored, and so is what a longer block or
// packet has at its end.
func (c *TRPConnect) Parse(b []byte) error {
	if len(b) < ConnectLen {
		return ErrConnectShort
	}
	n := int(binary.BigEndian.Uint16(b[0:]))
	if n > MaxPrivateData {
		return ErrPrivateDataLen
	}
	if len(b) < ConnectLen+n {
		return ErrConnectShort
	}
	*c = TRPConnect{
		IRD:         binary.BigEndian.Uint16(b[2:]),
		ORD:         binary.BigEndian.Uint16(b[4:]),
		PrivateData: b[ConnectLen : ConnectLen+n : ConnectLen+n],
	}
	return c.parseExtension(b[ConnectLen+n:])
}

// CheckExt reports a request or accept without a block, or with values with which no
// connection could work. Parse doesn't call it, so that connection management can answer.
func (c *TRPConnect) CheckExt() error {
	if !c.HasExt {
		return ErrNoExtension
	}
	return c.Ext.Check()
}

func (c *TRPConnect) parseExtension(b []byte) (err error) {
	c.HasExt, err = c.Ext.Parse(b)
	return err
}

// Parse reads the block at the start of b; there is none if what stands there is not of
// a version that we know.
func (e *TRPExtension) Parse(b []byte) (there bool, err error) {
	if len(b) < 4 || binary.BigEndian.Uint16(b) != extensionMagic || b[2] != extensionVersion {
		return false, nil
	}
	size := int(b[3])
	if size < TRPExtensionLen || size > len(b) {
		return false, ErrExtensionLen
	}
	*e = TRPExtension{
		Cookie:       binary.BigEndian.Uint32(b[4:]),
		QPN:          QPN(binary.BigEndian.Uint32(b[8:])),
		MaxSegment:   binary.BigEndian.Uint16(b[12:]),
		RecvWindow:   binary.BigEndian.Uint16(b[14:]),
		Capabilities: binary.BigEndian.Uint32(b[16:]),
	}
	if size >= TRPTokenLen {
		e.Target = QPN(binary.BigEndian.Uint32(b[20:]))
		e.Echo, e.MinRNRTimer = binary.BigEndian.Uint32(b[24:]), b[28]
	}
	if size >= TRPByNumberLen {
		e.PathMTU, e.RQPSN = b[32], PSN(binary.BigEndian.Uint32(b[32:])&0xffffff)
	}
	return true, nil
}

// Len is the number of bytes Put writes.
func (c *TRPConnect) Len() int {
	n := ConnectLen + len(c.PrivateData)
	if c.HasExt {
		n += c.Ext.len()
	}
	return n + c.Padding
}

// Put writes the body and answers its length. Unlike the other Puts it checks,
// because the private data is a client's.
func (c *TRPConnect) Put(b []byte) (n int, err error) {
	if len(c.PrivateData) > MaxPrivateData {
		return 0, ErrPrivateDataLen
	}
	if len(b) < c.Len() {
		return 0, ErrBufferShort
	}
	binary.BigEndian.PutUint16(b[0:], uint16(len(c.PrivateData)))
	binary.BigEndian.PutUint16(b[2:], c.IRD)
	binary.BigEndian.PutUint16(b[4:], c.ORD)
	n = ConnectLen + copy(b[ConnectLen:], c.PrivateData)
	if c.HasExt {
		n += c.Ext.put(b[n:])
	}
	clear(b[n : n+c.Padding])
	return n + c.Padding, nil
}

// Append appends the block to b.
func (e *TRPExtension) Append(b []byte) []byte {
	b = append(b, make([]byte, e.len())...)
	e.put(b[len(b)-e.len():])
	return b
}

func (e *TRPExtension) put(b []byte) int {
	n := e.len()
	_ = b[n-1]
	binary.BigEndian.PutUint16(b[0:], extensionMagic)
	b[2], b[3] = extensionVersion, byte(n)
	binary.BigEndian.PutUint32(b[4:], e.Cookie)
	binary.BigEndian.PutUint32(b[8:], uint32(e.QPN))
	binary.BigEndian.PutUint16(b[12:], e.MaxSegment)
	binary.BigEndian.PutUint16(b[14:], e.RecvWindow)
	binary.BigEndian.PutUint32(b[16:], e.Capabilities)
	if n >= TRPTokenLen {
		binary.BigEndian.PutUint32(b[20:], uint32(e.Target))
		binary.BigEndian.PutUint32(b[24:], e.Echo)
		b[28], b[29], b[30], b[31] = e.MinRNRTimer, 0, 0, 0
	}
	if n >= TRPByNumberLen {
		binary.BigEndian.PutUint32(b[32:], uint32(e.PathMTU)<<24|uint32(e.RQPSN)&0xffffff)
	}
	return n
}
