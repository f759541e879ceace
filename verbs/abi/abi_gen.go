// Code generated from urdma_abi.h by urdma/verbs/abi/generate; DO NOT EDIT.

package abi

// URDMA_ABI_*.
const (
	Version               = 9
	MaxMessage            = 4096
	MaxFDs                = (1 + MaxWorkers)
	MaxWorkers            = 64
	MaxPrivate            = 256
	NoHandle              = 0
	MaxBatch              = 16
	BatchMade             = 0xffffff00
	NoDevice              = 0xffffffff
	Batched               = 0
	Alone                 = 1
	Moves                 = 2
	Looks                 = 3
	None                  = 0
	HelloPool             = 1
	TransportIWARP        = 0
	TransportIB           = 1
	TransportRoCE         = 2
	RawOff                = 0
	RawNonIP              = 1
	RawAll                = 2
	TransportDefault      = 0xffffffff
	PathShared            = 0
	PathFallback          = 1
	PathNull              = 2
	PathFile              = 3
	PathOnDemand          = 4
	FlowKey               = 64
	FlowVLAN              = 1
	FlowIPv4              = 2
	FlowIPv6              = 4
	FlowTCP               = 8
	FlowUDP               = 16
	CaptureAll            = 1
	CaptureEvents         = 2
	CaptureChanges        = 4
	CapturePast           = 8
	CaptureFrame          = 1
	CaptureSkip           = 2
	CaptureEvent          = 3
	CaptureUnknown        = 0
	CaptureIn             = 1
	CaptureOut            = 2
	TraceCall             = 1
	TraceSend             = 2
	TraceReceive          = 3
	TraceCompletion       = 4
	TraceState            = 5
	TraceAsync            = 6
	TraceResent           = 7
	TraceNotReady         = 8
	TraceMark             = 9
	TraceCM               = 10
	TraceClient           = 11
	TraceLink             = 12
	TraceReason           = 13
	TracePlaced           = 14
	MarkBytes             = 96
	AdminReload           = 1
	AdminLogLevel         = 2
	AdminEndQP            = 3
	AdminEndClient        = 4
	ExplainRefused        = 0x0600
	ExplainEvent          = 0x0700
	ExplainConnection     = 0x0580
	PitfallUnsignaled     = 0x0801
	PitfallSmallCQ        = 0x0802
	PitfallLostWakeup     = 0x0803
	PitfallUnacknowledged = 0x0804
	PitfallAfterError     = 0x0805
	PitfallTimeout        = 0x0806
	PitfallRetry          = 0x0807
	PitfallDeregistered   = 0x0808
	PitfallNotArmed       = 0x0809
	PitfallOverlap        = 0x080a
	PitfallDestroyed      = 0x080b
	PitfallUnread         = 0x080c
	PitfallInline         = 0x080d
	PitfallSges           = 0x080e
	PitfallState          = 0x080f
	PitfallFull           = 0x0810
	PitfallAtomic         = 0x0811
	PitfallEmptySGE       = 0x0812
	PitfallGrh            = 0x0813
	PitfallPSN            = 0x0814
	PitfallUnready        = 0x0815
	PitfallRdAtomic       = 0x0816
	PitfallPrivate        = 0x0817
	PitfallRegisters      = 0x0818
	PitfallTiny           = 0x0819
	PitfallAHDomain       = 0x081a
	PitfallForked         = 0x081b
	PitfallFallback       = 0x081c
	PitfallNoReceive      = 0x081d
	WarnStatus            = 86
	InjectOwn             = 1
	InjectStart           = 2
	InjectBytes           = 3072
	InjectPosts           = 8
	StrictGarbage         = 0x1
	StrictSlots           = 0x2
	StrictLate            = 0x4
	StrictSRQOrder        = 0x100
	StrictInline          = 0x200
	StrictRNR             = 0x400
	StrictSpurious        = 0x800
	StrictWriteOrder      = 0x1000
	StrictAttributes      = 0x2000
	StrictReuse           = 0x4000
	CMWake                = 0xffffffff
	NumDoorbells          = 4096
	EndsFirst             = 0x0506
	EndsLast              = 0x0508
)

// The requests: enum urdma_abi_type.
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
	ResizeSRQ        Type = 26
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
	CreateFlow       Type = 62
	DestroyFlow      Type = 63
	Inspect          Type = 64
	Capture          Type = 65
	CaptureStop      Type = 66
	Mark             Type = 67
	Admin            Type = 68
	Explain          Type = 69
	Warn             Type = 70
	Inject           Type = 72
	OpenUmad         Type = 73
	OpenRDMANetlink  Type = 74
)

var requests = [...]request{
	Hello: {"HELLO", Size[HelloRequest](), None, Alone,
		"connecting to urdmad", "greeting urdmad"},
	QueryDevice: {"QUERY_DEVICE", Size[QueryDeviceRequest](), None, Alone,
		"ibv_query_device", "querying a device"},
	OpenDevice: {"OPEN_DEVICE", Size[OpenDeviceRequest](), CloseDevice, Batched,
		"ibv_open_device", "opening a device"},
	CloseDevice: {"CLOSE_DEVICE", Size[HandleMessage](), None, Batched,
		"ibv_close_device", "closing a device"},
	AllocPD: {"ALLOC_PD", Size[HandleMessage](), DeallocPD, Batched,
		"ibv_alloc_pd", "allocating a protection domain"},
	DeallocPD: {"DEALLOC_PD", Size[HandleMessage](), None, Batched,
		"ibv_dealloc_pd", "releasing a protection domain"},
	AddFile: {"ADD_FILE", Size[Header](), None, Alone,
		"ibv_reg_mr (sharing pages)", "sharing memory"},
	RegMR: {"REG_MR", Size[RegMRRequest](), DeregMR, Batched,
		"ibv_reg_mr", "registering memory"},
	DeregMR: {"DEREG_MR", Size[HandleMessage](), None, Batched,
		"ibv_dereg_mr", "deregistering memory"},
	CreateChannel: {"CREATE_CHANNEL", Size[HandleMessage](), DestroyChannel, Batched,
		"ibv_create_comp_channel", "creating a completion channel"},
	DestroyChannel: {"DESTROY_CHANNEL", Size[HandleMessage](), None, Batched,
		"ibv_destroy_comp_channel", "destroying a completion channel"},
	CreateCQ: {"CREATE_CQ", Size[CreateCQRequest](), DestroyCQ, Batched,
		"ibv_create_cq", "creating a completion queue"},
	ResizeCQ: {"RESIZE_CQ", Size[ResizeCQRequest](), None, Moves,
		"ibv_resize_cq", "resizing a completion queue"},
	DestroyCQ: {"DESTROY_CQ", Size[HandleMessage](), None, Batched,
		"ibv_destroy_cq", "destroying a completion queue"},
	CreateQP: {"CREATE_QP", Size[CreateQPRequest](), DestroyQP, Batched,
		"ibv_create_qp", "creating a queue pair"},
	ModifyQP: {"MODIFY_QP", Size[ModifyQPRequest](), None, Batched,
		"ibv_modify_qp", "modifying a queue pair"},
	QueryQP: {"QUERY_QP", Size[HandleMessage](), None, Batched,
		"ibv_query_qp", "querying a queue pair"},
	DestroyQP: {"DESTROY_QP", Size[HandleMessage](), None, Batched,
		"ibv_destroy_qp", "destroying a queue pair"},
	CreateSRQ: {"CREATE_SRQ", Size[CreateSRQRequest](), DestroySRQ, Batched,
		"ibv_create_srq", "creating a shared receive queue"},
	ModifySRQ: {"MODIFY_SRQ", Size[ModifySRQRequest](), None, Batched,
		"ibv_modify_srq", "modifying a shared receive queue"},
	QuerySRQ: {"QUERY_SRQ", Size[HandleMessage](), None, Batched,
		"ibv_query_srq", "querying a shared receive queue"},
	DestroySRQ: {"DESTROY_SRQ", Size[HandleMessage](), None, Batched,
		"ibv_destroy_srq", "destroying a shared receive queue"},
	OpenXRCD: {"OPEN_XRCD", Size[OpenXRCDRequest](), CloseXRCD, Alone,
		"ibv_open_xrcd", "opening an XRC domain"},
	CloseXRCD: {"CLOSE_XRCD", Size[HandleMessage](), None, Batched,
		"ibv_close_xrcd", "closing an XRC domain"},
	OpenQP: {"OPEN_QP", Size[OpenQPRequest](), DestroyQP, Batched,
		"ibv_open_qp", "opening a queue pair"},
	ResizeSRQ: {"RESIZE_SRQ", Size[ModifySRQRequest](), None, Moves,
		"ibv_modify_srq", "resizing a shared receive queue"},
	Batch: {"BATCH", Size[BatchRequest](), None, Alone,
		"rdma_create_qp, rdma_destroy_qp", "carrying out several requests"},
	CMCreateChannel: {"CM_CREATE_CHANNEL", Size[Header](), CMDestroyChannel, Batched,
		"rdma_create_event_channel", "creating an event channel"},
	CMDestroyChannel: {"CM_DESTROY_CHANNEL", Size[HandleMessage](), None, Batched,
		"rdma_destroy_event_channel", "destroying an event channel"},
	CMCreateID: {"CM_CREATE_ID", Size[CMCreateIDRequest](), CMDestroyID, Batched,
		"rdma_create_id", "creating an id"},
	CMDestroyID: {"CM_DESTROY_ID", Size[HandleMessage](), None, Batched,
		"rdma_destroy_id", "destroying an id"},
	CMBind: {"CM_BIND", Size[CMBindRequest](), None, Batched,
		"rdma_bind_addr", "binding"},
	CMResolveAddr: {"CM_RESOLVE_ADDR", Size[CMResolveAddrRequest](), None, Batched,
		"rdma_resolve_addr", "resolving an address"},
	CMResolveRoute: {"CM_RESOLVE_ROUTE", Size[CMValueRequest](), None, Batched,
		"rdma_resolve_route", "resolving a route"},
	CMListen: {"CM_LISTEN", Size[CMValueRequest](), None, Batched,
		"rdma_listen", "listening"},
	CMConnect: {"CM_CONNECT", Size[CMConnRequest](), None, Batched,
		"rdma_connect", "connecting"},
	CMAccept: {"CM_ACCEPT", Size[CMConnRequest](), None, Batched,
		"rdma_accept", "accepting"},
	CMReject: {"CM_REJECT", Size[CMConnRequest](), None, Batched,
		"rdma_reject", "rejecting"},
	CMDisconnect: {"CM_DISCONNECT", Size[HandleMessage](), None, Batched,
		"rdma_disconnect", "disconnecting"},
	CMSetOption: {"CM_SET_OPTION", Size[CMSetOptionRequest](), None, Batched,
		"rdma_set_option", "setting an option"},
	CMMigrateID: {"CM_MIGRATE_ID", Size[CMValueRequest](), None, Batched,
		"rdma_migrate_id", "moving an id to another channel"},
	CMWakeChannel: {"CM_WAKE_CHANNEL", Size[HandleMessage](), None, Batched,
		"rdma_migrate_id", "waking an event channel"},
	AllocMW: {"ALLOC_MW", Size[AllocMWRequest](), DeallocMW, Batched,
		"ibv_alloc_mw", "allocating a memory window"},
	DeallocMW: {"DEALLOC_MW", Size[HandleMessage](), None, Batched,
		"ibv_dealloc_mw", "deallocating a memory window"},
	AttachMcast: {"ATTACH_MCAST", Size[McastRequest](), None, Batched,
		"ibv_attach_mcast", "attaching to a group"},
	DetachMcast: {"DETACH_MCAST", Size[McastRequest](), None, Batched,
		"ibv_detach_mcast", "detaching from a group"},
	CreateFlow: {"CREATE_FLOW", Size[CreateFlowRequest](), DestroyFlow, Batched,
		"ibv_create_flow", "creating a flow"},
	DestroyFlow: {"DESTROY_FLOW", Size[HandleMessage](), None, Batched,
		"ibv_destroy_flow", "destroying a flow"},
	Inspect: {"INSPECT", Size[Header](), None, Looks,
		"urdma show", "looking inside"},
	Capture: {"CAPTURE", Size[CaptureRequest](), None, Looks,
		"urdma capture", "beginning a capture"},
	CaptureStop: {"CAPTURE_STOP", Size[Header](), None, Looks,
		"urdma capture", "ending a capture"},
	Mark: {"MARK", Size[MarkRequest](), None, Looks,
		"urdma trace --mark", "setting a bookmark"},
	Admin: {"ADMIN", Size[AdminRequest](), None, Looks,
		"urdma reload, log, end", "administering urdmad"},
	Explain: {"EXPLAIN", Size[ExplainRequest](), None, Looks,
		"urdma explain", "asking why something failed"},
	Warn: {"WARN", Size[WarnRequest](), None, Looks,
		"URDMA_WARN", "warning of a mistake"},
	Inject: {"INJECT", Size[InjectRequest](), None, Looks,
		"urdma inject", "injecting faults"},
	OpenUmad: {"OPEN_UMAD", Size[OpenUmadRequest](), None, Looks,
		"open of /dev/infiniband/umad", "opening a management device"},
	OpenRDMANetlink: {"OPEN_RDMA_NETLINK", Size[OpenRDMANetlinkRequest](), None, Looks,
		"socket of NETLINK_RDMA", "opening a socket of NETLINK_RDMA"},
}

var operations = [...]Operation{
	WRRDMAWrite: {"RDMA_WRITE", WCRDMAWrite, rdmapWrite, AccessRemoteWrite,
		true, true, false, true, false, false, false, false, false},
	WRRDMAWriteWithImm: {"RDMA_WRITE_WITH_IMM", WCRDMAWrite, rdmapWrite, AccessRemoteWrite,
		true, true, false, true, true, false, true, false, false},
	WRSend: {"SEND", WCSend, rdmapSend, 0,
		true, true, false, true, false, false, true, false, true},
	WRSendWithImm: {"SEND_WITH_IMM", WCSend, rdmapSend, 0,
		true, true, false, true, true, false, true, false, true},
	WRRDMARead: {"RDMA_READ", WCRDMARead, rdmapReadRequest, AccessRemoteRead,
		true, false, true, false, false, false, false, false, false},
	WRAtomicCmpAndSwp: {"ATOMIC_CMP_AND_SWP", WCCompSwap, rdmapAtomic, AccessRemoteAtomic,
		true, false, true, false, false, false, false, true, false},
	WRAtomicFetchAndAdd: {"ATOMIC_FETCH_AND_ADD", WCFetchAdd, rdmapAtomic, AccessRemoteAtomic,
		true, false, true, false, false, false, false, true, false},
	WRLocalInv: {"LOCAL_INV", WCLocalInv, NoRDMAP, 0,
		true, false, false, false, false, true, false, false, false},
	WRBindMW: {"BIND_MW", WCBindMW, NoRDMAP, 0,
		true, false, false, false, false, false, false, false, false},
	WRSendWithInv: {"SEND_WITH_INV", WCSend, rdmapSendInv, 0,
		true, true, false, true, false, true, true, false, false},
	WRTSO: {"TSO", WCTSO, NoRDMAP, 0,
		false, true, false, false, false, false, false, false, false},
	WRAtomicWrite: {"ATOMIC_WRITE", WCAtomicWrite, NoRDMAP, AccessRemoteWrite,
		false, true, false, true, false, false, false, false, false},
}

// Addr is struct urdma_abi_addr.
type Addr struct {
	Family  uint16
	PortBE  [2]byte
	ScopeID uint32
	Addr    [16]byte
}

// Header is struct urdma_abi_header.
type Header struct {
	Type   Type
	Length uint32
	Seq    uint32
	Status int32
}

// HelloRequest is struct urdma_abi_hello.
type HelloRequest struct {
	Header     Header
	ABIVersion uint32
	PID        uint32
	Command    [64]byte
	Flags      uint32
}

// HelloResponse is struct urdma_abi_hello_response.
type HelloResponse struct {
	Header        Header
	ABIVersion    uint32
	NumDevices    uint32
	DoorbellBytes uint32
	Workers       uint32
	SysfsPath     [256]byte
}

// Shown is struct urdma_abi_shown.
type Shown struct {
	Transport uint32
	Pad       uint32
	Profile   [16]byte
}

// QueryDeviceRequest is struct urdma_abi_query_device.
type QueryDeviceRequest struct {
	Header Header
	Device uint32
	Pad    uint32
	Shown  Shown
}

// Device is struct urdma_abi_device.
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
	VendorID       uint32
	MaxDatagram    uint32
	MaxMRSize      uint64
	MaxMsg         uint64
	MaxSRQ         uint32
	MaxSRQWR       uint32
	MaxSRQSGE      uint32
	MaxMW          uint32
	PortNum        uint32
	NumPorts       uint32
	VendorPartID   uint32
	HwVer          uint32
	FwVer          [32]byte
	Profile        [16]byte
	RawPackets     uint32
	Pad1           uint32
}

// OpenDeviceRequest is struct urdma_abi_open_device.
type OpenDeviceRequest struct {
	Header Header
	Device uint32
	Pad    uint32
}

// HandleMessage is struct urdma_abi_handle.
type HandleMessage struct {
	Header Header
	Handle uint32
	Pad    uint32
}

// BatchRequest is struct urdma_abi_batch.
type BatchRequest struct {
	Header Header
	Count  uint32
	Pad    uint32
}

// BatchResponse is struct urdma_abi_batch_response.
type BatchResponse struct {
	Header  Header
	Done    uint32
	Refused int32
	FDs     [MaxBatch]byte
}

// RegMRRequest is struct urdma_abi_reg_mr.
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
	Inode      uint64
	Major      uint32
	Minor      uint32
	Why        [80]byte
}

// RegMRResponse is struct urdma_abi_reg_mr_response.
type RegMRResponse struct {
	Header Header
	Handle uint32
	LKey   uint32
	RKey   uint32
	Pad    uint32
}

// McastRequest is struct urdma_abi_mcast.
type McastRequest struct {
	Header Header
	QP     uint32
	Pad    uint32
	Group  Addr
}

// CreateFlowRequest is struct urdma_abi_create_flow.
type CreateFlowRequest struct {
	Header   Header
	QP       uint32
	Type     uint32
	Priority uint32
	Port     uint32
	Flags    uint32
	Layers   uint32
	Value    [FlowKey]byte
	Mask     [FlowKey]byte
}

// AllocMWRequest is struct urdma_abi_alloc_mw.
type AllocMWRequest struct {
	Header Header
	PD     uint32
	Type   uint32
}

// AllocMWResponse is struct urdma_abi_alloc_mw_response.
type AllocMWResponse struct {
	Header Header
	Handle uint32
	RKey   uint32
}

// CreateCQRequest is struct urdma_abi_create_cq.
type CreateCQRequest struct {
	Header     Header
	Context    uint32
	Channel    uint32
	CQE        uint32
	CompVector uint32
}

// ResizeCQRequest is struct urdma_abi_resize_cq.
type ResizeCQRequest struct {
	Header Header
	Handle uint32
	CQE    uint32
}

// CQResponse is struct urdma_abi_cq_response.
type CQResponse struct {
	Header        Header
	Handle        uint32
	Entries       uint32
	EntriesOffset uint32
	Bytes         uint32
	Memfd         uint32
	RingOffset    uint32
}

// QPCap is struct urdma_abi_qp_cap.
type QPCap struct {
	MaxSendWR  uint32
	MaxRecvWR  uint32
	MaxSendSGE uint32
	MaxRecvSGE uint32
	MaxInline  uint32
}

// CreateQPRequest is struct urdma_abi_create_qp.
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

// QueueLayout is struct urdma_abi_queue_layout.
type QueueLayout struct {
	HeadOffset  uint32
	SlotsOffset uint32
	Entries     uint32
	Stride      uint32
}

// QPResponse is struct urdma_abi_qp_response.
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

// CreateSRQRequest is struct urdma_abi_create_srq.
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

// SRQResponse is struct urdma_abi_srq_response.
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

// OpenXRCDRequest is struct urdma_abi_open_xrcd.
type OpenXRCDRequest struct {
	Header  Header
	Context uint32
	OFlags  uint32
}

// OpenQPRequest is struct urdma_abi_open_qp.
type OpenQPRequest struct {
	Header Header
	XRCD   uint32
	QPNum  uint32
}

// ModifySRQRequest is struct urdma_abi_modify_srq.
type ModifySRQRequest struct {
	Header   Header
	Handle   uint32
	Mask     uint32
	MaxWR    uint32
	SRQLimit uint32
}

// QuerySRQResponse is struct urdma_abi_query_srq_response.
type QuerySRQResponse struct {
	Header   Header
	MaxWR    uint32
	MaxSGE   uint32
	SRQLimit uint32
	Pad      uint32
}

// QPAttr is struct urdma_abi_qp_attr.
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

// ModifyQPRequest is struct urdma_abi_modify_qp.
type ModifyQPRequest struct {
	Header Header
	Handle uint32
	Mask   uint32
	Attr   QPAttr
}

// QueryQPResponse is struct urdma_abi_query_qp_response.
type QueryQPResponse struct {
	Header    Header
	Attr      QPAttr
	Cap       QPCap
	SQSigAll  uint32
	Unready   uint32
	PeerReads uint32
}

// InspectResponse is struct urdma_abi_inspect_response.
type InspectResponse struct {
	Header Header
	Bytes  uint64
}

// OpenUmadRequest is struct urdma_abi_open_umad.
type OpenUmadRequest struct {
	Header Header
	Device uint32
	Issm   uint32
}

// UmadIoctl is struct urdma_abi_umad_ioctl.
type UmadIoctl struct {
	Request  uint32
	Argument [44]byte
}

// OpenRDMANetlinkRequest is struct urdma_abi_open_rdma_netlink.
type OpenRDMANetlinkRequest struct {
	Header Header
	Shown  Shown
}

// CaptureRequest is struct urdma_abi_capture.
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

// CaptureResponse is struct urdma_abi_capture_response.
type CaptureResponse struct {
	Header     Header
	DataOffset uint32
	DataBytes  uint32
}

// CaptureRing is struct urdma_abi_capture_ring.
type CaptureRing struct {
	Head    uint64
	Lost    uint64
	SpentNs uint64
	Pad0    [5]uint64
	Tail    uint64
	Pad1    [7]uint64
}

// CaptureRecord is struct urdma_abi_capture_record.
type CaptureRecord struct {
	Bytes      uint32
	Kind       uint16
	Direction  uint16
	TimeNs     uint64
	FrameBytes uint32
	KeptBytes  uint32
	NoteBytes  uint32
	Device     uint32
	QPN        uint32
	OtherQPN   uint32
}

// TraceEvent is struct urdma_abi_trace_event.
type TraceEvent struct {
	Kind       uint32
	PID        uint32
	QPN        uint32
	Code       uint32
	Status     uint32
	Length     uint32
	WRID       uint64
	DurationNs uint64
}

// MarkRequest is struct urdma_abi_mark.
type MarkRequest struct {
	Header Header
	Text   [MarkBytes]byte
}

// AdminRequest is struct urdma_abi_admin.
type AdminRequest struct {
	Header Header
	Op     uint32
	Pad    uint32
	Object uint64
	Text   [16]byte
}

// ExplainRequest is struct urdma_abi_explain.
type ExplainRequest struct {
	Header Header
	Number uint32
	QPN    uint32
}

// ExplainResponse is struct urdma_abi_explain_response.
type ExplainResponse struct {
	Header Header
	Text   [2048]byte
}

// WarnRequest is struct urdma_abi_warn.
type WarnRequest struct {
	Header Header
	Number uint32
	QPN    uint32
	Text   [512]byte
}

// InjectRequest is struct urdma_abi_inject.
type InjectRequest struct {
	Header Header
	Flags  uint32
	Pad    uint32
	Text   [InjectBytes]byte
}

// PostFault is struct urdma_abi_post_fault.
type PostFault struct {
	Number uint32
	Pad    uint32
	Call   uint32
	Error  uint32
	Nth    uint64
	Count  uint64
	Chance uint64
	Seed   uint64
}

// InjectResponse is struct urdma_abi_inject_response.
type InjectResponse struct {
	Header     Header
	Number     uint32
	Strict     uint32
	StrictSeed uint64
	Hits       uint64
	Asked      uint32
	Posts      uint32
	Post       [InjectPosts]PostFault
}

// CMCreateIDRequest is struct urdma_abi_cm_create_id.
type CMCreateIDRequest struct {
	Header  Header
	Channel uint32
	PS      uint32
}

// CMBindRequest is struct urdma_abi_cm_bind.
type CMBindRequest struct {
	Header Header
	ID     uint32
	Pad    uint32
	Addr   Addr
}

// CMBound is struct urdma_abi_cm_bound.
type CMBound struct {
	Header Header
	Local  Addr
	Device uint32
	Pad    uint32
}

// CMResolveAddrRequest is struct urdma_abi_cm_resolve_addr.
type CMResolveAddrRequest struct {
	Header    Header
	ID        uint32
	TimeoutMS uint32
	Src       Addr
	Dst       Addr
}

// CMValueRequest is struct urdma_abi_cm_value.
type CMValueRequest struct {
	Header Header
	ID     uint32
	Value  uint32
}

// CMParam is struct urdma_abi_cm_param.
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

// CMConnRequest is struct urdma_abi_cm_conn.
type CMConnRequest struct {
	Header Header
	ID     uint32
	Pad    uint32
	Param  CMParam
}

// CMSetOptionRequest is struct urdma_abi_cm_set_option.
type CMSetOptionRequest struct {
	Header  Header
	ID      uint32
	Level   uint32
	OptName uint32
	Value   uint32
}

// CompEvent is struct urdma_abi_comp_event.
type CompEvent struct {
	CQ  uint32
	Pad uint32
}

// AsyncEvent is struct urdma_abi_async_event.
type AsyncEvent struct {
	EventType uint32
	Handle    uint32
}

// CMEvent is struct urdma_abi_cm_event.
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

// Doorbells is struct urdma_abi_doorbells.
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

// SQRing is struct urdma_abi_sq_ring.
type SQRing struct {
	Prod        uint32
	Pad0        [15]uint32
	Cons        uint32
	Failed      uint32
	FirstFailed uint32
	Pad1        [13]uint32
}

// RQRing is struct urdma_abi_rq_ring.
type RQRing struct {
	Prod uint32
	Pad0 [15]uint32
	Cons uint32
	Pad1 [15]uint32
}

// SGE is struct urdma_abi_sge.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SQE is struct urdma_abi_sqe.
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

// RQE is struct urdma_abi_rqe.
type RQE struct {
	WRID   uint64
	NumSGE uint32
	Pad    uint32
}

// CQRing is struct urdma_abi_cq_ring.
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

// CQE is struct urdma_abi_cqe.
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
