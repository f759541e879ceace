package inject

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// Statuses are the names of enum ibv_wc_status, in its order, without IBV_WC_.
var Statuses = [...]string{"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR",
	"MW_BIND_ERR",
	"BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR",
	"RNR_RETRY_EXC_ERR",
	"LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR",
	"RESP_TIMEOUT_ERR",
	"GENERAL_ERR", "TM_ERR", "TM_RNDV_INCOMPLETE"}

// Events are the names of enum ibv_event_type, in its order, without IBV_EVENT_.
var Events = [...]string{"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG",
	"PATH_MIG_ERR",
	"DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR", "SRQ_LIMIT_REACHED",
	"QP_LAST_WQE_REACHED", "CLIENT_REREGISTER", "GID_CHANGE", "WQ_FATAL"}

// PortErrors are the kernel's names of InfiniBand's error counters (/sys/class/infiniband/*/ports/*/counters), in
// the order of the MAD PortCounters.
var PortErrors = [...]string{"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
	"port_rcv_remote_physical_errors",
	"port_rcv_switch_relay_errors", "port_xmit_discards", "port_xmit_constraint_errors", "port_rcv_constraint_errors",
	"local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped"}

// EventNone is the Event of a completion event, which is not an asynchronous event.
const EventNone = -1

// eventsOf are the asynchronous events of each kind of object; the first is the default.
var eventsOf = map[string][]string{
	"cq": {"CQ_ERR"},
	"qp": {"QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG", "PATH_MIG_ERR",
		"QP_LAST_WQE_REACHED"},
	"srq":    {"SRQ_ERR", "SRQ_LIMIT_REACHED"},
	"device": {"DEVICE_FATAL"},
	"port":   {"PORT_ERR", "PORT_ACTIVE", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "CLIENT_REREGISTER", "GID_CHANGE"},
}

var messages = []string{MessageSend: "SEND", MessageWrite: "RDMA_WRITE", MessageRead: "RDMA_READ",
	MessageAtomic: "ATOMIC"}

var cmEvents = []string{"ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST",
	"CONNECT_RESPONSE", "CONNECT_ERROR",
	"UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL"}

var answers = []string{Access: "access", Operation: "operation", Invalid: "invalid", NotReady: "rnr"}

// answersTo are the messages to which a responder of a reliable connection can give each answer.
var answersTo = map[Answer][]int64{
	Access:    {MessageWrite, MessageRead, MessageAtomic},
	Operation: {MessageSend, MessageWrite, MessageRead, MessageAtomic},
	Invalid:   {MessageSend, MessageAtomic},
	NotReady:  {MessageSend},
}

// Answers reports whether a can be the answer to a message.
func Answers(a Answer, message int64) bool { return slices.Contains(answersTo[a], message) }

// posts are the functions that the library carries out without a request to urdmad.
var posts = []string{"ibv_post_send", "ibv_post_recv", "ibv_post_srq_recv"}

// PostNumber is the index of a function in posts.
func PostNumber(function string) int { return slices.Index(posts, function) }

// functions are the functions that send a request to urdmad.
var functions = func() (all []string) {
	for t := range abi.Type(128) {
		for name := range strings.SplitSeq(t.Call(), ", ") {
			if (strings.HasPrefix(name, "ibv_") || strings.HasPrefix(name, "rdma_")) && !strings.Contains(name, " ") {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}()

// Makes reports whether a request comes from a call of function.
func Makes(t abi.Type, function string) bool {
	return t.Call() == function || slices.Contains(strings.Split(t.Call(), ", "), function)
}

func opcodes() (all []string) {
	for i := range uint32(32) {
		if op := abi.OperationOf(i); op != nil {
			all = append(all, op.Name)
		} else {
			all = append(all, "")
		}
	}
	return all
}

// number finds a name in a list, in any case, with or without its prefix.
func number(names []string, what, name, prefix string) (int64, error) {
	short := strings.TrimPrefix(strings.ToUpper(name), prefix)
	if i := slices.IndexFunc(names, func(n string) bool { return n != "" && strings.EqualFold(n, short) }); i >= 0 {
		return int64(i), nil
	}
	known := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" })
	return 0, fmt.Errorf("%s is %q, expected one of %s", what, name, strings.Join(known, ", "))
}

// lastErrno is the highest errno value of Linux.
const lastErrno = 133

func errnoNamed(name string) (syscall.Errno, error) {
	for e := syscall.Errno(1); e <= lastErrno; e++ {
		if strings.EqualFold(unix.ErrnoName(e), name) {
			return e, nil
		}
	}
	return 0, fmt.Errorf("errno is %q, expected a name of errno(3), such as ENOMEM", name)
}
