// Package verbs is RDMA for Go programs: urdmad's client in pure Go.
//
// It mirrors libibverbs and librdmacm; each exported name says which man page
// (sections 3 and 7) it follows. Open connects to a running urdmad; Dial and
// Listen make connections as rdma_cm does; a Conn holds a queue pair with its
// completion queues:
//
//	client, err := verbs.Open("")
//	conn, err := client.Dial(ctx, "198.18.0.1:7471", nil)
//	memory, err := conn.PD().AllocMemory(4096, verbs.LocalWrite)
//	err = conn.Send(ctx, memory.SGE(0, 4096))
//
// Queue pairs of type UD exchange datagrams (Destination): rdma_cm finds the
// peer (Dial, ListenDatagrams, JoinMulticast), or the program does (StartDatagrams).
// Those of type UC exchange unreliable messages and Writes (ConnectNumber). Extended
// reliable connections serve several programs of a host at once (XRCDomain).
//
// # Memory
//
// AllocMemory gives memory that urdmad maps too: data moves straight between it
// and the wire. RegisterMemory takes any slice; urdmad reaches it by
// /proc/self/mem, which costs a system call and a copy, so it is for data that
// already lies somewhere else. As everywhere in RDMA, memory that posted work
// names belongs to the transfer until its completion was polled.
//
// # Goroutines
//
// All methods may be called by several goroutines at once. Work posted by
// several goroutines to one queue pair stays whole but takes an order of its
// own; several goroutines that poll one completion queue share its completions
// between them. Waiting costs no thread.
//
// # The end of urdmad
//
// When urdmad ends, nothing hangs: posted work completes with
// StatusWRFlushErr, contexts report EventDeviceFatal, connections are done, and
// everything else answers ErrGone. A request to urdmad itself is not bounded in
// time: a urdmad that is stopped (SIGSTOP) holds it up until it goes on. After 2 s a
// line of log/slog's says which process the program waits for, and its state.
//
// # Errors
//
// What urdmad refuses is an error that wraps the syscall.Errno that the man
// page names (errors.Is). Posting and polling return the sentinel errors of
// this package and allocate nothing.
//
// The package knows the control protocol and the rings (verbs/abi, verbs/ring),
// and nothing of packets.
package verbs
