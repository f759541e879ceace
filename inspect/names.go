package inspect

import "urdma/verbs/abi"

// QPStates are the names of enum ibv_qp_state, in its order.
var QPStates = abi.QPStates

// IDStates are the states of an rdma_cm id.
var IDStates = [...]string{"idle", "bound", "resolving", "resolved", "routed", "connecting", "requested", "accepting",
	"connected", "ended"}

// How urdmad accesses a memory region.
const (
	PathShared   = "shared"
	PathFallback = "fallback"
)

// Protocols of a connection on the wire.
const (
	ProtocolUDP = "udp" // urdma's own protocol (docs/WIRE.md)
	ProtocolTCP = "tcp" // iWARP: MPA
)

// Paths of a connection's messages.
const (
	PathHost = "host" // between two queue pairs of one urdmad
	PathWire = "wire"
)
