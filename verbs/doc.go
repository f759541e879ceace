// Package verbs gives Go programs RDMA through a running urdmad: registered
// memory, queue pairs, completion queues and connections, as libibverbs and
// librdmacm give them to C programs. It needs no cgo, no privilege and no RDMA
// hardware.
//
//	client, err := verbs.Open()                       // the urdmad of this machine
//	dev, err := client.OpenDevice(0)
//	pd, err := dev.AllocPD()
//	mr, err := pd.AllocMemory(1<<20, verbs.LocalWrite|verbs.RemoteWrite)
//	cq, err := dev.NewCQ(128)
//	conn, err := client.Dial(ctx, "10.0.0.1:7471", verbs.ConnConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
//	_, err = conn.PostSend(&verbs.SendRequest{ID: 1, Op: verbs.OpSend, Signaled: true, Local: mr.Slice(0, 64)})
//	n, err := cq.Wait(ctx, completions)
//
// # Ownership
//
// Memory named by a posted request belongs to urdmad until the request's
// completion has been polled: reading a receive buffer or changing the source of
// a Send earlier gives undefined bytes, as with any verbs device. A request
// posted without Signaled is over when a later one on the same queue pair has
// completed.
//
// Objects are closed in the reverse order of their making; closing one that
// others still stand on fails with EBUSY. Client.Close closes everything.
//
// # Numbers
//
// Lengths and offsets are in bytes. Keys and addresses are opaque; a peer learns
// them by whatever message the program likes, in whatever byte order it likes.
//
// # Concurrency
//
// All methods may be called from any goroutine. Posting takes a lock of the
// queue and polling one of the completion queue; neither waits for urdmad.
//
// # Two kinds of memory
//
// AllocMemory gives memory that urdmad maps too: it reads and writes it directly.
// Register takes any Go slice and pins it; urdmad then reaches it through the
// process's /proc/self/mem, which costs a system call for each segment.
package verbs
