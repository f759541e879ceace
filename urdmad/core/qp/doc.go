// Package qp is the queue-pair core: queue pairs and their states, send queues, receive queues,
// completion queues, asynchronous events, and the effects of arriving messages on them. It stands
// above every wire protocol. A Carrier (carrier.go) moves a queue pair's messages: packages
// samehost, trp, mpa, roce and datagram have one each.
//
// The data of a queue pair is one circle of types, because each leads to the queue pair or its table.
// It is declared with the methods that change nothing else: qp.go, table.go (all queue pairs of a
// worker, and clients), runqueue.go (the line of those that may send), sendqueue.go, sendwr.go and
// slots.go, recvqueue.go, cq.go, xrc.go (XRC domains), element.go (scatter/gather elements), readahead.go,
// jobs.go (the fallback path, for memory that urdmad cannot map), carrier.go; and what others learn or
// decide: watch.go (an observer of a client), failure.go and refusal.go (why a queue pair has failed, and
// what of that the peer may know), intercept.go (features that change behaviour). The other files
// use it, and form no circle.
//
// A work request goes down. post.go copies it out of the client's ring and checks it, the queue
// pair gets in line, and Table.Transmit (budget.go) asks the Carrier to send. send_start.go begins a
// message; local.go carries out work requests that need no peer. The Carrier reads the bytes through
// copy.go; bytes on the fallback path are read ahead. When the Carrier reports messages as delivered,
// acknowledge.go completes them, oldest first, by complete.go and cq.go.
//
// A message goes up. arrive.go has the steps that a Carrier calls.
// receive_begin.go takes a receive, copy.go scatters bytes or lend.go lends the memory for them,
// source.go supplies the bytes for the answer to a Read, and receive_complete.go completes the
// receive. If no receive is posted, rnr.go limits how long the message waits. fallback.go writes to
// memory that urdmad cannot map.
//
// States are in state.go; modify.go and transitions.go are ibv_modify_qp(3). async.go has the
// asynchronous events. flush.go ends the work of a queue pair, dependents.go adds and removes queue
// pairs and fails those that depend on a broken object, send_last.go sends the last posts of a queue
// pair that is being destroyed.
//
// All of it runs on the worker's thread. The package knows client rings and memory. It must not
// know packets, ports, wire protocols, rdma_cm ids or the control protocol.
package qp
