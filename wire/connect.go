package wire

import "encoding/binary"

const (
	// ConnectLen is the length of a body without private data: the length field, IRD and ORD.
	ConnectLen = 6

	// MaxPrivateData is the largest private data of a request, accept or reject, as in MPA (RFC 5044 section 7.1).
	MaxPrivateData = 512

	extensionMagic   = 0x7552
	extensionVersion = 1
	// Lengths of an extension block of version 1: TRPExtensionLen without optional fields, TRPTokenLen with the
	// token of a retry, TRPByNumberLen for a connection by queue pair number.
	TRPExtensionLen = 20
	TRPTokenLen     = 32
	TRPByNumberLen  = 36

	// MinMaxSegment is the smallest segment size that a peer must accept (RFC 5041 section 5.1 has 128 for the
	// lower layer's MULPDU).
	MinMaxSegment = 128
)

// CapXRC is the capability of a queue pair that is an XRC target.
const CapXRC uint32 = 1 << 2

// TRPExtension is the block after the private data, with which a peer says that it supports our extensions. All
// values describe the sender of the block.
type TRPExtension struct {
	Cookie       uint32 // the peer must put it into every later packet
	QPN          QPN
	MaxSegment   uint16 // largest DDP segment that the sender accepts, with its DDP header, in bytes
	RecvWindow   uint16 // initial receive window, in segments
	Capabilities uint32 // CapXRC, or 0

	// Fields for connections by queue pair number (docs/WIRE.md chapter 9).
	Target      QPN    // the queue pair to connect to; 0: the block is not for such a connection
	Echo        uint32 // the cookie last received from the peer, or 0; in a retry the token (chapter 3)
	MinRNRTimer uint8  // minimum RNR timer of the sender's queue pair
	PathMTU     uint8  // path MTU of the sender's queue pair, enum ibv_mtu; 0: unknown, and so is RQPSN
	RQPSN       PSN    // RQ PSN of the sender's queue pair
}

// ByNumber reports whether the block belongs to a connection by queue pair number.
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

// Check returns an error for values with which no connection can work.
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
	IRD         uint16 // inbound RDMA Reads that the sender will serve at once
	ORD         uint16 // outbound RDMA Reads that the sender wants to have outstanding
	PrivateData []byte // aliases the input after Parse; at most MaxPrivateData
	Ext         TRPExtension
	HasExt      bool
	Padding     int // bytes of 0 at the end; 0 after Parse
}

// Parse reads b, the whole body. It ignores unknown extension blocks after the private data, and extra bytes at the
// end of a longer block or packet.
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

// CheckExt returns an error for a request or accept without an extension block, or with values with which no
// connection can work. Parse doesn't call it, so that connection management can reply to such a message.
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

// Parse reads the block at the start of b. there is false if b starts with anything but a block of a version that
// we know.
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

// Put writes the body and returns its length. Unlike the other Puts it checks its values, because the private data
// comes from a client.
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
