// Package qp is the queue-pair core: queue pairs and their states, send queues,
// receive queues, completion queues, asynchronous events, and what a message does to
// them. It stands above every wire protocol. A Carrier (carrier.go) moves a queue
// pair's messages: packages samehost, trp, mpa and datagram have one each.
//
// Down, a work request's way: post.go copies it out of the client's ring and checks
// it (sendqueue.go and slots.go hold it), the queue pair gets in line (runqueue.go),
// and Table.Transmit (budget.go, table.go) asks its Carrier to move what may go.
// send_start.go begins a message; local.go carries out what concerns no peer. The
// Carrier reads the bytes by copy.go, those on the fallback path from a stage
// (stage.go). acknowledge.go completes what the Carrier reports as carried, from the
// oldest on, and cq.go writes the entry.
//
// Up, a message's way: arrive.go has the steps that a Carrier calls. receive_begin.go
// takes a receive (recvqueue.go), copy.go scatters bytes or room.go lends the memory
// for them, source.go is what a Read is answered from, and receive_complete.go ends
// the receive. Where none is posted, rnr.go says how long the message waits. What
// urdmad cannot map is written by fallback.go.
//
// States are in state.go; modify.go and transitions.go are ibv_modify_qp(3). flush.go
// ends the work of a queue pair, broken.go fails those that stand on something
// broken, last.go sends what was posted last. xrc.go has XRC domains,
// watch.go tells whoever watches a client, why.go says why a queue pair fails, told.go
// what its peer hears of that, intercept.go has what features may change.
//
// All of it runs on the worker's thread. The package knows client rings and
// memory. It must not know packets, ports, wire protocols, rdma_cm ids or the
// control protocol.
package qp
