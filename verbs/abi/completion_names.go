package abi

import "fmt"

var statusNames = map[uint32]string{
	StatusSuccess: "success", StatusLocLenErr: "local length error", StatusLocQPOpErr: "local queue pair operation error",
	StatusLocProtErr: "local protection error", StatusWRFlushErr: "flushed", StatusMWBindErr: "memory window bind error",
	StatusBadRespErr: "bad response", StatusLocAccessErr: "local access error", StatusRemInvReqErr: "remote invalid request",
	StatusRemAccessErr: "remote access error", StatusRemOpErr: "remote operation error",
	StatusRetryExcErr: "peer does not answer", StatusRNRRetryExcErr: "peer posted no receive",
	StatusRemAbortErr: "remote abort", StatusFatalErr: "fatal error", StatusGeneralErr: "general error",
}

// StatusText says in words what a completion's status means.
func StatusText(status uint32) string { return nameOr(statusNames, status, "status") }

var completionNames = map[uint32]string{
	WCSend: "Send", WCRDMAWrite: "RDMA Write", WCRDMARead: "RDMA Read", WCFetchAdd: "fetch and add", WCCompSwap: "compare and swap",
	WCBindMW: "bind of a memory window", WCLocalInv: "local invalidation", WCRecv: "receive",
	WCRecvRDMAWithImm: "receive of an RDMA Write with immediate",
}

// CompletionText says in words what a completion's opcode means.
func CompletionText(opcode uint32) string { return nameOr(completionNames, opcode, "operation") }

var pairTypeNames = map[uint32]string{QPTypeRC: "RC", QPTypeUC: "UC", QPTypeUD: "UD", QPTypeXRCSend: "XRC_SEND", QPTypeXRCRecv: "XRC_RECV"}

// QPTypeText is the short name of a queue pair type.
func QPTypeText(kind uint32) string { return nameOr(pairTypeNames, kind, "queue pair type") }

var asyncNames = map[uint32]string{
	EventCQErr: "IBV_EVENT_CQ_ERR", EventQPFatal: "IBV_EVENT_QP_FATAL", EventQPReqErr: "IBV_EVENT_QP_REQ_ERR",
	EventQPAccessErr: "IBV_EVENT_QP_ACCESS_ERR", EventCommEst: "IBV_EVENT_COMM_EST", EventSQDrained: "IBV_EVENT_SQ_DRAINED",
	EventSRQLimitReached: "IBV_EVENT_SRQ_LIMIT_REACHED", EventQPLastWQEReached: "IBV_EVENT_QP_LAST_WQE_REACHED",
}

// AsyncText is the name of an asynchronous event of a queue pair or queue, enum ibv_event_type.
func AsyncText(event uint32) string { return nameOr(asyncNames, event, "event") }

var cmNames = map[uint32]string{
	CMAddrResolved: "RDMA_CM_EVENT_ADDR_RESOLVED", CMAddrError: "RDMA_CM_EVENT_ADDR_ERROR", CMRouteResolved: "RDMA_CM_EVENT_ROUTE_RESOLVED",
	CMConnectRequest: "RDMA_CM_EVENT_CONNECT_REQUEST", CMConnectError: "RDMA_CM_EVENT_CONNECT_ERROR", CMUnreachable: "RDMA_CM_EVENT_UNREACHABLE",
	CMRejected: "RDMA_CM_EVENT_REJECTED", CMEstablished: "RDMA_CM_EVENT_ESTABLISHED", CMDisconnected: "RDMA_CM_EVENT_DISCONNECTED",
	CMTimewaitExit: "RDMA_CM_EVENT_TIMEWAIT_EXIT",
}

// CMText is the name of an rdma_cm event, enum rdma_cm_event_type.
func CMText(event uint32) string { return nameOr(cmNames, event, "event") }

func nameOr(names map[uint32]string, n uint32, what string) string {
	if s, ok := names[n]; ok {
		return s
	}
	return fmt.Sprintf("%s %d", what, n)
}
