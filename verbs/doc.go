// Package verbs is RDMA for Go programs: urdmad's client in pure Go.
//
// It mirrors libibverbs and librdmacm; each exported name names the man page (sections 3 and 7) that it
// follows. Open connects to a running urdmad; Dial and Listen make connections as rdma_cm does; a Conn holds
// a queue pair with its completion queues:
//
//	client, err := verbs.Open("")
//	conn, err := client.Dial(ctx, "198.18.0.1:7471", nil)
//	memory, err := conn.PD().AllocMemory(4096, verbs.LocalWrite)
//	err = conn.Send(ctx, memory.SGE(0, 4096))
//
// Queue pairs of type UD exchange datagrams (Destination): rdma_cm finds the peer (Dial, ListenDatagrams,
// JoinMulticast), or the program does (StartDatagrams). Queue pairs of type UC exchange unreliable messages
// and Writes (ConnectNumber). Extended reliable connections serve several programs of a host at once
// (XRCDomain).
//
// # Memory
//
// AllocMemory returns memory that urdmad maps, too: data moves directly between it and the wire.
// RegisterMemory takes any slice, for data that already exists; urdmad reaches it through /proc/self/mem,
// which costs a system call and a copy. As always in RDMA, memory used by posted work must not be touched
// until its completion was polled.
//
// # Goroutines
//
// All methods may be called by several goroutines at once. If several goroutines post to one queue pair, each
// work request stays whole, but their order is not defined. If several goroutines poll one completion queue,
// each completion goes to one of them. Waiting takes no thread.
//
// # The end of urdmad
//
// When urdmad ends, no call hangs: posted work completes with StatusWRFlushErr, contexts report
// EventDeviceFatal, connections end, and all other calls return ErrGone. A request to urdmad has no time
// limit: if urdmad is stopped (SIGSTOP), the request waits until it continues. After 2 s a line is logged
// (log/slog) with the process and its state.
//
// # Errors
//
// If urdmad refuses a request, the error wraps the syscall.Errno that the man page names (errors.Is). Posting
// and polling return the sentinel errors of this package and allocate nothing.
//
// The package knows the control protocol and the rings (verbs/abi, verbs/ring), and nothing of packets.
package verbs
