// Package qp is the queue-pair core: queue pairs and their states, send queues, receive queues,
// completion queues, asynchronous events, and the effects of arriving messages on them. It stands
// above every wire protocol. A Carrier (carrier.go) moves a queue pair's messages: packages
// samehost, trp, mpa, roce and datagram have one each.
//
// A work request goes down. post.go copies it out of the client's ring and checks it
// (sendqueue.go and slots.go hold it), the queue pair gets in line (runqueue.go), and
// Table.Transmit (budget.go, table.go) asks the Carrier to send. send_start.go begins a message;
// local.go carries out work requests that need no peer. The Carrier reads the bytes through
// copy.go; bytes on the fallback path are read ahead (readahead.go). When the Carrier reports
// messages as delivered, acknowledge.go completes them, oldest first, and cq.go writes the
// completions.
//
// A message goes up. arrive.go has the steps that a Carrier calls. receive_begin.go takes a
// receive (recvqueue.go), copy.go scatters bytes or lend.go lends the memory for them, source.go
// supplies the bytes for the answer to a Read, and receive_complete.go completes the receive. If
// no receive is posted, rnr.go limits how long the message waits. fallback.go writes to memory
// that urdmad cannot map.
//
// States are in state.go; modify.go and transitions.go are ibv_modify_qp(3). flush.go ends the
// work of a queue pair, dependents.go fails the queue pairs that depend on a broken object,
// send_last.go sends the last posts of a queue pair that is being destroyed. xrc.go has XRC
// domains. watch.go reports events to an observer of a client, failure.go has the reasons for the
// failure of a queue pair, refusal.go the part of them that the peer may know, intercept.go the
// interface of features that change behaviour.
//
// All of it runs on the worker's thread. The package knows client rings and memory. It must not
// know packets, ports, wire protocols, rdma_cm ids or the control protocol.
package qp
