// Package qp is the queue-pair core: queue pairs and their states, send queues,
// receive queues, completion queues and asynchronous events. It stands above
// every wire protocol. A queue pair is served by a Carrier, which moves its
// messages: rooms samehost and trp today.
//
// Down, a work request's way: post.go copies it out of the client's ring and
// checks it (sendqueue.go holds it), the queue pair gets in line (runqueue.go),
// Table.Transmit asks its Carrier to move what may go, complete.go completes
// what the Carrier reports as done, from the oldest on, and cq.go writes the
// entry.
//
// Up, a message's way: the Carrier takes a receive (receive.go, recvqueue.go),
// looks keys up in package mem, scatters bytes (copy.go) and ends the receive.
//
// All of it runs on the worker's thread. The package knows client rings and
// memory. It must not know packets, ports, wire protocols, rdma_cm ids or the
// control protocol.
package qp
