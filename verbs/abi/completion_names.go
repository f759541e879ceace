package abi

import (
	"fmt"
	"strings"
)

var statusNames = map[uint32]string{
	StatusSuccess: "success", StatusLocLenErr: "local length error", StatusLocQPOpErr: "local queue pair operation error",
	StatusLocProtErr: "local protection error", StatusWRFlushErr: "flushed", StatusMWBindErr: "memory window bind error",
	StatusBadRespErr: "bad response", StatusLocAccessErr: "local access error",
	StatusRemInvReqErr: "remote invalid request",
	StatusRemAccessErr: "remote access error", StatusRemOpErr: "remote operation error",
	StatusRetryExcErr: "peer does not answer", StatusRNRRetryExcErr: "peer posted no receive",
	StatusRemAbortErr: "remote abort", StatusFatalErr: "fatal error", StatusGeneralErr: "general error",
}

// StatusText describes a completion's status in words.
func StatusText(status uint32) string { return nameOr(statusNames, status, "status") }

var completionNames = map[uint32]string{
	WCSend: "Send", WCRDMAWrite: "RDMA Write", WCRDMARead: "RDMA Read", WCFetchAdd: "fetch and add",
	WCCompSwap: "compare and swap",
	WCBindMW:   "bind of a memory window", WCLocalInv: "local invalidation", WCRecv: "receive",
	WCRecvRDMAWithImm: "receive of an RDMA Write with immediate",
}

// CompletionText describes a completion's opcode in words.
func CompletionText(opcode uint32) string { return nameOr(completionNames, opcode, "operation") }

var pairTypeNames = map[uint32]string{QPTypeRC: "RC", QPTypeUC: "UC", QPTypeUD: "UD", QPTypeXRCSend: "XRC_SEND",
	QPTypeRawPacket: "RAW_PACKET", QPTypeXRCRecv: "XRC_RECV"}

// QPTypeText returns the short name of a queue pair type.
func QPTypeText(kind uint32) string { return nameOr(pairTypeNames, kind, "queue pair type") }

// QPStates are the names of enum ibv_qp_state, in its order.
var QPStates = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// QPStateText returns the name of a queue pair state.
func QPStateText(state uint32) string {
	if state < uint32(len(QPStates)) {
		return QPStates[state]
	}
	return fmt.Sprintf("state %d", state)
}

// attributeNames are the names of enum ibv_qp_attr_mask, by bit.
var attributeNames = [...]string{
	"IBV_QP_STATE", "IBV_QP_CUR_STATE", "IBV_QP_EN_SQD_ASYNC_NOTIFY", "IBV_QP_ACCESS_FLAGS", "IBV_QP_PKEY_INDEX",
	"IBV_QP_PORT", "IBV_QP_QKEY",
	"IBV_QP_AV", "IBV_QP_PATH_MTU", "IBV_QP_TIMEOUT", "IBV_QP_RETRY_CNT", "IBV_QP_RNR_RETRY", "IBV_QP_RQ_PSN",
	"IBV_QP_MAX_QP_RD_ATOMIC",
	"IBV_QP_ALT_PATH", "IBV_QP_MIN_RNR_TIMER", "IBV_QP_SQ_PSN", "IBV_QP_MAX_DEST_RD_ATOMIC", "IBV_QP_PATH_MIG_STATE",
	"IBV_QP_CAP",
	"IBV_QP_DEST_QPN",
}

// QPMaskText returns the attribute names in a mask (enum ibv_qp_attr_mask) as a C expression; "0" for none.
func QPMaskText(mask uint32) string {
	var names []string
	for bit, name := range attributeNames {
		if mask&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	if rest := mask &^ (1<<len(attributeNames) - 1); rest != 0 || mask == 0 {
		names = append(names, fmt.Sprintf("%#x", rest))
	}
	return strings.Join(names, "|")
}

var asyncNames = map[uint32]string{
	EventCQErr: "IBV_EVENT_CQ_ERR", EventQPFatal: "IBV_EVENT_QP_FATAL", EventQPReqErr: "IBV_EVENT_QP_REQ_ERR",
	EventQPAccessErr: "IBV_EVENT_QP_ACCESS_ERR", EventCommEst: "IBV_EVENT_COMM_EST",
	EventSQDrained:       "IBV_EVENT_SQ_DRAINED",
	EventSRQLimitReached: "IBV_EVENT_SRQ_LIMIT_REACHED", EventQPLastWQEReached: "IBV_EVENT_QP_LAST_WQE_REACHED",
}

// AsyncText returns the name of an asynchronous event of a queue pair or queue (enum ibv_event_type).
func AsyncText(event uint32) string { return nameOr(asyncNames, event, "event") }

var cmNames = map[uint32]string{
	CMAddrResolved: "RDMA_CM_EVENT_ADDR_RESOLVED", CMAddrError: "RDMA_CM_EVENT_ADDR_ERROR",
	CMRouteResolved:  "RDMA_CM_EVENT_ROUTE_RESOLVED",
	CMConnectRequest: "RDMA_CM_EVENT_CONNECT_REQUEST", CMConnectError: "RDMA_CM_EVENT_CONNECT_ERROR",
	CMUnreachable: "RDMA_CM_EVENT_UNREACHABLE",
	CMRejected:    "RDMA_CM_EVENT_REJECTED", CMEstablished: "RDMA_CM_EVENT_ESTABLISHED",
	CMDisconnected: "RDMA_CM_EVENT_DISCONNECTED",
	CMTimewaitExit: "RDMA_CM_EVENT_TIMEWAIT_EXIT",
}

// CMText returns the name of an rdma_cm event (enum rdma_cm_event_type).
func CMText(event uint32) string { return nameOr(cmNames, event, "event") }

func nameOr(names map[uint32]string, n uint32, what string) string {
	if s, ok := names[n]; ok {
		return s
	}
	return fmt.Sprintf("%s %d", what, n)
}
