package inspect

// QPStates are the names of enum ibv_qp_state, in its order.
var QPStates = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// IDStates are the states of an rdma_cm id.
var IDStates = [...]string{"idle", "bound", "resolving", "resolved", "routed", "connecting", "requested", "accepting", "connected", "ended"}

// How urdmad reaches a memory region.
const (
	PathShared   = "shared"
	PathFallback = "fallback"
)

// How a connection's messages travel.
const (
	PathHost = "host" // between two queue pairs of one urdmad
	PathWire = "wire"
)
