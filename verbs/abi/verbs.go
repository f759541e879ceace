package abi

// Values defined by libibverbs (infiniband/verbs.h).

// Work request opcodes, enum ibv_wr_opcode.
const (
	WRRDMAWrite         = 0
	WRRDMAWriteWithImm  = 1
	WRSend              = 2
	WRSendWithImm       = 3
	WRRDMARead          = 4
	WRAtomicCmpAndSwp   = 5
	WRAtomicFetchAndAdd = 6
	WRLocalInv          = 7
	WRBindMW            = 8
	WRSendWithInv       = 9
	WRTSO               = 10
	WRAtomicWrite       = 15
)

// Send flags, enum ibv_send_flags.
const (
	SendFence     = 1
	SendSignaled  = 2
	SendSolicited = 4
	SendInline    = 8
)

// Completion opcodes, enum ibv_wc_opcode.
const (
	WCSend            = 0
	WCRDMAWrite       = 1
	WCRDMARead        = 2
	WCCompSwap        = 3
	WCFetchAdd        = 4
	WCBindMW          = 5
	WCLocalInv        = 6
	WCTSO             = 7
	WCAtomicWrite     = 9
	WCRecv            = 128
	WCRecvRDMAWithImm = 129
)

// Completion flags, enum ibv_wc_flags.
const (
	WCGRH     = 1
	WCWithImm = 2
	WCWithInv = 8
)

// Completion status, enum ibv_wc_status.
const (
	StatusSuccess        = 0
	StatusLocLenErr      = 1
	StatusLocQPOpErr     = 2
	StatusLocProtErr     = 4
	StatusWRFlushErr     = 5
	StatusMWBindErr      = 6
	StatusBadRespErr     = 7
	StatusLocAccessErr   = 8
	StatusRemInvReqErr   = 9
	StatusRemAccessErr   = 10
	StatusRemOpErr       = 11
	StatusRetryExcErr    = 12
	StatusRNRRetryExcErr = 13
	StatusRemAbortErr    = 16
	StatusFatalErr       = 19
	StatusGeneralErr     = 21
)

// Access flags, enum ibv_access_flags.
const (
	AccessLocalWrite   = 1
	AccessRemoteWrite  = 2
	AccessRemoteRead   = 4
	AccessRemoteAtomic = 8
	AccessMWBind       = 16
	AccessZeroBased    = 32
	AccessOnDemand     = 64
)

// Types of memory windows, enum ibv_mw_type.
const (
	MWType1 = 1
	MWType2 = 2
)

// Queue pair states, enum ibv_qp_state.
const (
	QPSReset = 0
	QPSInit  = 1
	QPSRTR   = 2
	QPSRTS   = 3
	QPSSQD   = 4
	QPSSQE   = 5
	QPSErr   = 6
)

// Queue pair attribute masks, enum ibv_qp_attr_mask.
const (
	QPMaskState            = 1 << 0
	QPMaskCurState         = 1 << 1
	QPMaskEnSQDAsyncNotify = 1 << 2
	QPMaskAccessFlags      = 1 << 3
	QPMaskPKeyIndex        = 1 << 4
	QPMaskPort             = 1 << 5
	QPMaskQKey             = 1 << 6
	QPMaskAV               = 1 << 7
	QPMaskPathMTU          = 1 << 8
	QPMaskTimeout          = 1 << 9
	QPMaskRetryCnt         = 1 << 10
	QPMaskRNRRetry         = 1 << 11
	QPMaskRQPSN            = 1 << 12
	QPMaskMaxQPRdAtomic    = 1 << 13
	QPMaskMinRNRTimer      = 1 << 15
	QPMaskSQPSN            = 1 << 16
	QPMaskMaxDestRdAtomic  = 1 << 17
	QPMaskPathMigState     = 1 << 18
	QPMaskDestQPN          = 1 << 20
)

// Node types, enum ibv_node_type.
const (
	NodeCA   = 1
	NodeRNIC = 4
)

// Transport types, enum ibv_transport_type.
const (
	TransportTypeIB    = 0
	TransportTypeIWARP = 1
)

// Link layers.
const (
	LinkLayerInfiniBand = 1
	LinkLayerEthernet   = 2
)

// GID types, enum ibv_gid_type.
const (
	GIDTypeIB     = 0
	GIDTypeRoCEV2 = 2
)

// Queue pair types, enum ibv_qp_type.
const (
	QPTypeRC = 2
	QPTypeUC = 3
	QPTypeUD = 4

	QPTypeRawPacket = 8

	QPTypeXRCSend = 9
	QPTypeXRCRecv = 10
)

// Types of flows, enum ibv_flow_attr_type, and a flag, enum ibv_flow_flags.
const (
	FlowNormal     = 0
	FlowAllDefault = 1
	FlowMCDefault  = 2
	FlowSniffer    = 3

	FlowFlagsDontTrap = 1 << 1
)

// Shared receive queue types, enum ibv_srq_type.
const (
	SRQTypeBasic = 0
	SRQTypeXRC   = 1
)

// Asynchronous events, enum ibv_event_type.
const (
	EventCQErr            = 0
	EventQPFatal          = 1
	EventQPReqErr         = 2
	EventQPAccessErr      = 3
	EventCommEst          = 4
	EventSQDrained        = 5
	EventDeviceFatal      = 8
	EventPortActive       = 9
	EventPortErr          = 10
	EventSMChange         = 13
	EventSRQErr           = 14
	EventSRQLimitReached  = 15
	EventQPLastWQEReached = 16
	EventClientReregister = 17
	EventGIDChange        = 18
)

// Shared receive queue attribute masks, enum ibv_srq_attr_mask.
const (
	SRQMaskMaxWR = 1 << 0
	SRQMaskLimit = 1 << 1
)

// rdma_cm events, enum rdma_cm_event_type.
const (
	CMAddrResolved    = 0
	CMAddrError       = 1
	CMRouteResolved   = 2
	CMRouteError      = 3
	CMConnectRequest  = 4
	CMConnectResponse = 5
	CMConnectError    = 6
	CMUnreachable     = 7
	CMRejected        = 8
	CMEstablished     = 9
	CMDisconnected    = 10
	CMDeviceRemoval   = 11
	CMTimewaitExit    = 15
)

// rdma_cm port spaces, enum rdma_port_space.
const (
	PSIPoIB = 0x0002
	PSTCP   = 0x0106
	PSUDP   = 0x0111
	PSIB    = 0x013F
)
