package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Program is the calls of two sides, each with two queue pairs; queue pair i of one side is connected to i of the
// other.
type Program struct {
	// Shared: urdmad can map the memory. SRQ: receives are posted to a shared queue. SigAll: sq_sig_all. Windows:
	// there are two memory windows of type 2, or of type 1 (Type1).
	// UD: the queue pairs are of type UD instead of RC, and not connected.
	// XRC: each connection is from a queue pair of type XRC_SEND to one of type XRC_RECV; SRQ is set, and each side
	// has two shared queues in an XRC domain, each with its own completion queue.
	Shared, SRQ, SigAll, Windows, Type1, UD, XRC bool `json:",omitempty"`
	// Senders has a bit for each queue pair of an XRC program: the side of XRC_SEND.
	Senders int `json:",omitempty"`
	// RNRRetry is rnr_retry, and Access qp_access_flags, of all queue pairs.
	RNRRetry, Access int
	Calls            []Call
}

// Call is one call of a side.
type Call struct {
	// What: connect, state, send, receive, limit, deregister, destroy or busy.
	What string
	Side int `json:",omitempty"`
	// QP: the queue pair; of an XRC program's receive or limit the shared queue.
	QP int `json:",omitempty"`
	// Number: the state to move to; the limit; the index of a region.
	Number int `json:",omitempty"`
	// Sends of one ibv_post_send.
	Sends   []Send   `json:",omitempty"`
	Receive *Receive `json:",omitempty"`
	// Next: the next call follows at once, whatever this one returns.
	Next bool `json:",omitempty"`
}

// purges reports whether completions that the program has not polled yet may disappear.
func (c *Call) purges() bool {
	return c.What == "connect" || c.What == "destroy" || c.What == "state" && c.Number == stateReset
}

// followedAtOnce reports whether the call after call i follows before the program looks at results. SQD does not follow
// datagrams: it would stay unknown which have left, and whether they arrive before later calls.
func (p *Program) followedAtOnce(i int) bool {
	if !p.Calls[i].Next || i+1 == len(p.Calls) {
		return false
	}
	next := &p.Calls[i+1]
	return !next.purges() && !(p.UD && next.What == "state" && next.Number == stateSQD)
}

// queue returns the number of a shared queue that a call or a message names.
func (p *Program) queue(named int) int {
	if p.XRC {
		return named
	}
	return 0
}

// sends reports whether a queue pair of a side can send.
func (p *Program) sends(side, qp int) bool { return !p.XRC || p.Senders>>qp&1 == side }

// Key is the key of the named region or window. Variant is added to the low byte of a key of type 2; for type 1
// it denotes the key that the bind with this Key returned.
type Key struct {
	Of      string
	Variant int `json:",omitempty"`
}

// Element is a part of the side's own memory.
type Element struct {
	Key            Key
	Offset, Length int
}

// Send is a work request of a send queue.
type Send struct {
	ID       int
	Opcode   string
	Flags    int `json:",omitempty"`
	Imm      int `json:",omitempty"`
	Elements []Element
	// Key and At name the peer's memory; or a window, which gets Length and Access in region Of of Key; or the
	// key to invalidate.
	Key           Key    `json:",omitzero"`
	At            int    `json:",omitempty"`
	Compare, Swap uint64 `json:",omitempty"`
	Window        int    `json:",omitempty"`
	Region        int    `json:",omitempty"`
	Length        int    `json:",omitempty"`
	Access        int    `json:",omitempty"`
	// To is the peer's queue pair to which a datagram goes, or the shared queue to which a message of XRC goes; QKey
	// is added to the datagram's Q_Key.
	To   int `json:",omitempty"`
	QKey int `json:",omitempty"`

	// early: a bind or an invalidation has taken effect before its turn (differences.go).
	early bool
	// data is what an inline request has copied. result is the peer's answer to a Read or an atomic; it is
	// written when the answer arrives.
	data, result *[]int16
}

// Receive is a work request of a receive queue.
type Receive struct {
	ID       int
	Elements []Element
}

// String returns the program as in a file of testdata/cases, one call per line.
func (p Program) String() string {
	calls := p.Calls
	p.Calls = nil
	head, _ := json.Marshal(p) // a struct of plain fields
	var b strings.Builder
	fmt.Fprint(&b, strings.TrimSuffix(string(head), "null}"), "[")
	for i, c := range calls {
		text, _ := json.Marshal(c) // as above
		fmt.Fprintf(&b, "%s\n  %s", map[bool]string{true: ","}[i > 0], text)
	}
	return b.String() + "\n]}\n"
}

func length(elements []Element) (n int) {
	for _, e := range elements {
		n += e.Length
	}
	return n
}

// Constants of libibverbs (infiniband/verbs.h).
const (
	localWrite, remoteWrite, remoteRead, remoteAtomic, bindable = 1, 2, 4, 8, 16
	allRemote                                                   = remoteWrite | remoteRead | remoteAtomic

	fence, signaled, inline = 1, 2, 8

	withImm = 2

	stateReset, stateInit, stateRTR, stateRTS, stateSQD, stateSQE, stateErr = 0, 1, 2, 3, 4, 5, 6

	eventRequest, eventAccess, eventLimit, eventLast = 2, 3, 15, 16
)

// A completion's status; the numbers of enum ibv_wc_status.
const (
	success    = 0
	locLength  = 1
	locQPOp    = 2
	locProt    = 4
	flushed    = 5
	bindError  = 6
	locAccess  = 8
	remInvalid = 9
	remAccess  = 10
	remOp      = 11
	retryExc   = 12
	rnrExc     = 13
	general    = 21
)

// opcodes of work requests and of their completions
var opcodes = map[string]struct{ request, completion int }{
	"WRITE": {0, 1}, "WRITE_IMM": {1, 1}, "SEND": {2, 0}, "SEND_IMM": {3, 0}, "READ": {4, 2}, "CAS": {5, 3}, "ADD": {6, 4},
	"INVALIDATE": {7, 6}, "BIND": {8, 5}, "SEND_INV": {9, 0},
}

// regions are the names of a side's regions, with their rights. foreign is in another domain; gone was deregistered.
var regions = []struct {
	name          string
	start, length int
	access        int
}{
	{"out", 0, outBytes, remoteRead},
	{"in", inStart, inBytes, localWrite | allRemote | bindable},
	{"receive", receiveStart, receiveBytes, localWrite},
	{"foreign", inStart, inBytes, localWrite | allRemote},
	{"gone", inStart, inBytes, localWrite | allRemote},
}

const (
	regionIn      = 1
	regionForeign = 3
	regionGone    = 4
)
