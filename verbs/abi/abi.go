// Package abi mirrors urdma_abi.h, the contract between urdmad and its
// clients: control messages, event messages and the layout of shared rings.
//
// The header is the authority and carries the documentation of every field;
// the tests here compare names, values, sizes and offsets with these types, and
// write urdma_abi_layout.h, by which the C side fails to compile if it differs.
// abi.go mirrors urdma_abi.h, verbs.go the numbers of rdma-core.
// The package knows layouts only; behaviour lives in verbs/ring and urdmad.
package abi

// Limits of the control protocol.
const (
	Version      = 5
	MaxMessage   = 4096 // bytes
	MaxWorkers   = 64
	MaxFDs       = 1 + MaxWorkers
	MaxPrivate   = 256 // bytes of rdma_cm private data
	NoHandle     = 0
	MaxBatch     = 16         // requests in one BATCH
	BatchMade    = 0xffffff00 // see BATCH; no handle is that high
	NoDevice     = 0xffffffff
	NumDoorbells = 4096 // of one worker
)

// Type is the kind of a control message.
type Type uint32

// Control messages, see enum urdma_abi_type.
const (
	Hello            Type = 1
	QueryDevice      Type = 2
	OpenDevice       Type = 3
	CloseDevice      Type = 4
	AllocPD          Type = 5
	DeallocPD        Type = 6
	AddFile          Type = 7
	RegMR            Type = 8
	DeregMR          Type = 9
	CreateChannel    Type = 10
	DestroyChannel   Type = 11
	CreateCQ         Type = 12
	ResizeCQ         Type = 13
	DestroyCQ        Type = 14
	CreateQP         Type = 15
	ModifyQP         Type = 16
	QueryQP          Type = 17
	DestroyQP        Type = 18
	CreateSRQ        Type = 19
	ModifySRQ        Type = 20
	QuerySRQ         Type = 21
	DestroySRQ       Type = 22
	OpenXRCD         Type = 23
	CloseXRCD        Type = 24
	OpenQP           Type = 25
	PoolQueues       Type = 26
	Batch            Type = 27
	CMCreateChannel  Type = 32
	CMDestroyChannel Type = 33
	CMCreateID       Type = 34
	CMDestroyID      Type = 35
	CMBind           Type = 36
	CMResolveAddr    Type = 37
	CMResolveRoute   Type = 38
	CMListen         Type = 39
	CMConnect        Type = 40
	CMAccept         Type = 41
	CMReject         Type = 42
	CMDisconnect     Type = 43
	CMSetOption      Type = 44
	CMMigrateID      Type = 45
	CMWakeChannel    Type = 46
	AllocMW          Type = 56
	DeallocMW        Type = 57
	AttachMcast      Type = 60
	DetachMcast      Type = 61
	Inspect          Type = 64
	Capture          Type = 65
	CaptureStop      Type = 66
)

// Transports a device can be presented as.
const (
	TransportIWARP = 0
	TransportIB    = 1
	TransportRoCE  = 2

	TransportDefault = 0xffffffff // the one that urdma.json says
)

// Paths by which urdmad reaches a memory region.
const (
	PathShared   = 0
	PathFallback = 1
	PathNull     = 2
)

// Addr is the address of a device, or of one end of a connection.
type Addr struct {
	Family  uint16 // syscall.AF_UNSPEC, AF_INET or AF_INET6
	PortBE  [2]byte
	ScopeID uint32
	Addr    [16]byte
}

// Header begins every control message.
type Header struct {
	Type   Type
	Length uint32
	Seq    uint32
	Status int32
}

// HelloRequest is the first message of a client.
type HelloRequest struct {
	Header     Header
	ABIVersion uint32
	PID        uint32
	Command    [64]byte
}

// HelloResponse comes with the doorbell memfd and the kick socket.
type HelloResponse struct {
	Header        Header
	ABIVersion    uint32
	NumDevices    uint32
	DoorbellBytes uint32
	Workers       uint32
	SysfsPath     [256]byte
}

// QueryDeviceRequest asks what a device can do.
type QueryDeviceRequest struct {
	Header    Header
	Device    uint32
	Transport uint32
}

// BatchRequest begins several requests in one message.
type BatchRequest struct {
	Header Header
	Count  uint32
	Pad    uint32
}

// BatchResponse begins their answers.
type BatchResponse struct {
	Header  Header
	Done    uint32
	Refused int32
	FDs     [MaxBatch]uint8
}

// OpenDeviceRequest opens a device.
type OpenDeviceRequest struct {
	Header Header
	Device uint32
	Pad    uint32
}

// Device answers QUERY_DEVICE.
type Device struct {
	Header         Header
	Name           [64]byte
	NodeGUIDBE     [8]byte
	Addr           Addr
	PrefixLength   uint32
	MAC            [6]byte
	Pad0           uint16
	MTU            uint32
	Transport      uint32
	NodeType       uint32
	TransportType  uint32
	LinkLayer      uint32
	GIDType        uint32
	GID            [16]byte
	LID            uint32
	LinkUp         uint32
	MaxQP          uint32
	MaxQPWR        uint32
	MaxSGE         uint32
	MaxSGERd       uint32
	MaxInline      uint32
	MaxCQ          uint32
	MaxCQE         uint32
	MaxMR          uint32
	MaxPD          uint32
	MaxRdAtom      uint32
	NumCompVectors uint32
	Version        uint32
	MaxMRSize      uint64
	MaxMsg         uint64
	MaxSRQ         uint32
	MaxSRQWR       uint32
	MaxSRQSGE      uint32
	MaxMW          uint32
	MaxDatagram    uint32
	Pad1           uint32
}

// HandleMessage names one object: a request, or a response that returns one.
type HandleMessage struct {
	Header Header
	Handle uint32
	Pad    uint32
}

// RegMRRequest registers memory.
type RegMRRequest struct {
	Header     Header
	PD         uint32
	Access     uint32
	Addr       uint64
	Length     uint64
	IOVA       uint64
	Path       uint32
	File       uint32
	FileOffset uint64
	Replaces   uint32
	Pad        uint32
}

// RegMRResponse returns the keys of a memory region.
type RegMRResponse struct {
	Header Header
	Handle uint32
	LKey   uint32
	RKey   uint32
	Pad    uint32
}

// McastRequest attaches a queue pair to a group, or detaches it.
type McastRequest struct {
	Header Header
	QP     uint32
	Pad    uint32
	Group  Addr
}

// AllocMWRequest asks for a memory window.
type AllocMWRequest struct {
	Header Header
	PD     uint32
	Type   uint32
}

// AllocMWResponse returns the first STag of a memory window.
type AllocMWResponse struct {
	Header Header
	Handle uint32
	RKey   uint32
}

// CreateCQRequest asks for a completion queue.
type CreateCQRequest struct {
	Header     Header
	Context    uint32
	Channel    uint32
	CQE        uint32
	CompVector uint32
}

// ResizeCQRequest asks for another size.
type ResizeCQRequest struct {
	Header Header
	Handle uint32
	CQE    uint32
}

// CQResponse comes with the ring's memfd.
type CQResponse struct {
	Header        Header
	Handle        uint32
	Entries       uint32
	EntriesOffset uint32
	Bytes         uint32
	Memfd         uint32
	RingOffset    uint32
}

// QPCap is what a queue pair can hold.
type QPCap struct {
	MaxSendWR  uint32
	MaxRecvWR  uint32
	MaxSendSGE uint32
	MaxRecvSGE uint32
	MaxInline  uint32
}

// CreateQPRequest asks for a queue pair.
type CreateQPRequest struct {
	Header      Header
	PD          uint32
	QPType      uint32
	SendCQ      uint32
	RecvCQ      uint32
	SRQ         uint32
	XRCD        uint32
	CreateFlags uint32
	SourceQPN   uint32
	SQSigAll    uint32
	Cap         QPCap
	UserHandle  uint64
}

// CreateSRQRequest asks for a shared receive queue.
type CreateSRQRequest struct {
	Header   Header
	PD       uint32
	MaxWR    uint32
	MaxSGE   uint32
	SRQLimit uint32
	SRQType  uint32
	XRCD     uint32
	CQ       uint32
	Pad      uint32
}

// SRQResponse comes with the memfd of the queue.
type SRQResponse struct {
	Header Header
	Handle uint32
	MaxWR  uint32
	MaxSGE uint32
	RQ     QueueLayout
	Bytes  uint32
	SRQNum uint32
	Pad    uint32
}

// OpenXRCDRequest opens an XRC domain, with the file that names it or without.
type OpenXRCDRequest struct {
	Header  Header
	Context uint32
	OFlags  uint32
}

// OpenQPRequest asks for a further reference to a queue pair of type XRC_RECV.
type OpenQPRequest struct {
	Header Header
	XRCD   uint32
	QPNum  uint32
}

// ModifySRQRequest sets the limit, or the size; then an SRQResponse answers it.
type ModifySRQRequest struct {
	Header   Header
	Handle   uint32
	Mask     uint32
	MaxWR    uint32
	SRQLimit uint32
}

// QuerySRQResponse answers QUERY_SRQ.
type QuerySRQResponse struct {
	Header   Header
	MaxWR    uint32
	MaxSGE   uint32
	SRQLimit uint32
	Pad      uint32
}

// QueueLayout says where a send or receive queue lies in its memfd. Its zero
// value is that of a queue that does not exist.
type QueueLayout struct {
	HeadOffset  uint32
	SlotsOffset uint32
	Entries     uint32
	Stride      uint32
}

// QPResponse comes with the memfd of the queues.
type QPResponse struct {
	Header   Header
	Handle   uint32
	QPN      uint32
	Cap      QPCap
	SQ       QueueLayout
	RQ       QueueLayout
	Bytes    uint32
	Worker   uint32
	Doorbell uint32
	Memfd    uint32
}

// QPAttr is the part of struct ibv_qp_attr that crosses.
type QPAttr struct {
	QPState          uint32
	CurQPState       uint32
	PathMTU          uint32
	QKey             uint32
	RQPSN            uint32
	SQPSN            uint32
	DestQPNum        uint32
	QPAccessFlags    uint32
	PKeyIndex        uint32
	PortNum          uint32
	MaxRdAtomic      uint32
	MaxDestRdAtomic  uint32
	MinRNRTimer      uint32
	Timeout          uint32
	RetryCnt         uint32
	RNRRetry         uint32
	DLID             uint32
	SGIDIndex        uint32
	DGID             [16]byte
	IsGlobal         uint32
	SQDraining       uint32
	FlowLabel        uint32
	HopLimit         uint32
	TrafficClass     uint32
	SL               uint32
	StaticRate       uint32
	SrcPathBits      uint32
	AHPortNum        uint32
	EnSQDAsyncNotify uint32
}

// ModifyQPRequest changes a queue pair's state or attributes.
type ModifyQPRequest struct {
	Header Header
	Handle uint32
	Mask   uint32
	Attr   QPAttr
}

// QueryQPResponse answers QUERY_QP and MODIFY_QP.
type QueryQPResponse struct {
	Header   Header
	Attr     QPAttr
	Cap      QPCap
	SQSigAll uint32
}

// InspectResponse comes with a memfd that holds a snapshot.
type InspectResponse struct {
	Header Header
	Bytes  uint64
}

// Constants of a capture.
const (
	CaptureAll = 1

	CaptureFrame = 1
	CaptureSkip  = 2

	CaptureUnknown = 0
	CaptureIn      = 1
	CaptureOut     = 2
)

// CaptureRequest starts a capture.
type CaptureRequest struct {
	Header    Header
	RingBytes uint32
	SnapBytes uint32
	Device    uint32
	QPN       uint32
	PID       uint32
	Flags     uint32
	Host      Addr
}

// CaptureResponse comes with the memfd of a capture's ring.
type CaptureResponse struct {
	Header     Header
	DataOffset uint32
	DataBytes  uint32
}

// CaptureRing is the head of a capture's ring.
type CaptureRing struct {
	Head uint64
	Lost uint64
	Pad0 [6]uint64
	Tail uint64
	Pad1 [7]uint64
}

// CaptureRecord is the head of a record in a capture's ring.
type CaptureRecord struct {
	Bytes      uint32
	Kind       uint16
	Direction  uint16
	TimeNs     uint64
	FrameBytes uint32
	KeptBytes  uint32
	NoteBytes  uint32
	Device     uint32
}

// CMCreateIDRequest makes an rdma_cm id.
type CMCreateIDRequest struct {
	Header  Header
	Channel uint32
	PS      uint32
}

// CMBindRequest binds an id to an address.
type CMBindRequest struct {
	Header Header
	ID     uint32
	Pad    uint32
	Addr   Addr
}

// CMBound answers CM_BIND, CM_RESOLVE_ADDR and CM_LISTEN.
type CMBound struct {
	Header Header
	Local  Addr
	Device uint32
	Pad    uint32
}

// CMResolveAddrRequest resolves a destination.
type CMResolveAddrRequest struct {
	Header    Header
	ID        uint32
	TimeoutMS uint32
	Src       Addr
	Dst       Addr
}

// CMValueRequest is CM_RESOLVE_ROUTE, CM_LISTEN and CM_MIGRATE_ID.
type CMValueRequest struct {
	Header Header
	ID     uint32
	Value  uint32
}

// CMParam is struct rdma_conn_param.
type CMParam struct {
	QP                 uint32
	QPNum              uint32
	QKey               uint32
	ResponderResources uint8
	InitiatorDepth     uint8
	FlowControl        uint8
	RetryCount         uint8
	RNRRetryCount      uint8
	SRQ                uint8
	PrivateDataLen     uint16
	PrivateData        [MaxPrivate]byte
}

// Private returns the private data that PrivateDataLen covers.
func (p *CMParam) Private() []byte {
	return p.PrivateData[:min(int(p.PrivateDataLen), MaxPrivate)]
}

// SetPrivate stores private data, cut at MaxPrivate bytes.
func (p *CMParam) SetPrivate(b []byte) {
	p.PrivateDataLen = uint16(copy(p.PrivateData[:], b))
}

// CMConnRequest is CM_CONNECT, CM_ACCEPT and CM_REJECT.
type CMConnRequest struct {
	Header Header
	ID     uint32
	Pad    uint32
	Param  CMParam
}

// CMSetOptionRequest is rdma_set_option.
type CMSetOptionRequest struct {
	Header  Header
	ID      uint32
	Level   uint32
	OptName uint32
	Value   uint32
}

// CompEvent is sent on a completion channel.
type CompEvent struct {
	CQ  uint32
	Pad uint32
}

// AsyncEvent is sent on a context's asynchronous event socket.
type AsyncEvent struct {
	EventType uint32
	Handle    uint32
}

// CMWake is the Event that CMWakeChannel asks for.
const CMWake = 0xffffffff

// CMEvent is sent on an rdma_cm event channel.
type CMEvent struct {
	Event  uint32
	Status int32
	ID     uint32
	Child  uint32
	Device uint32
	Pad    uint32
	Local  Addr
	Peer   Addr
	Param  CMParam
}

// Doorbells is one worker's section of a client's doorbell memory.
type Doorbells struct {
	Summary    uint64
	Poller     uint32
	Waits      uint32
	Pad0       [6]uint64
	Sleeping   uint32
	YieldPost  uint32
	YieldPoll  uint32
	Core       uint32
	YieldAlone uint32
	Pad1       [11]uint32
	Bits       [64]uint64
	Pad2       [432]uint64
}

// SQRing is the head of a send queue.
type SQRing struct {
	Prod        uint32
	Pad0        [15]uint32
	Cons        uint32
	Failed      uint32
	FirstFailed uint32
	Pad1        [13]uint32
}

// RQRing is the head of a receive queue.
type RQRing struct {
	Prod uint32
	Pad0 [15]uint32
	Cons uint32
	Pad1 [15]uint32
}

// SGE is a scatter/gather element.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SQE is the head of a send queue slot.
type SQE struct {
	WRID         uint64
	Opcode       uint32
	Flags        uint32
	ImmOrSTag    uint32
	NumSGE       uint32
	InlineLength uint32
	RKey         uint32
	RemoteAddr   uint64
	CompareAdd   uint64
	Swap         uint64
	RemoteSRQN   uint32
	Pad          uint32
}

// RQE is the head of a receive queue slot.
type RQE struct {
	WRID   uint64
	NumSGE uint32
	Pad    uint32
}

// CQRing is the head of a completion queue's shared memory.
type CQRing struct {
	Prod    uint32
	Pad0    [15]uint32
	Cons    uint32
	Pad1    [15]uint32
	Arm     uint32
	Told    uint32
	Pad2    [14]uint32
	Overrun uint32
	Pad3    [15]uint32
}

// CQE is a completion.
type CQE struct {
	WRID       uint64
	Status     uint32
	Opcode     uint32
	VendorErr  uint32
	ByteLen    uint32
	ImmOrSTag  uint32
	QPNum      uint32
	SrcQP      uint32
	WCFlags    uint32
	Timestamp  uint64
	UserHandle uint64
	Index      uint32
	SourceLID  uint32
}
