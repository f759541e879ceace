// Package engine is one worker's poll loop. It owns the worker's stacks (TRP, MPA, RoCE, ...) and
// knows the order in which they are served.
//
// loop.go is the turn, in this order: calls from other goroutines, the remainder of multicast
// messages (datagram), received bursts of the interfaces (netif, then trp or datagram), sockets
// (mpa), fallback jobs (qp), doorbells (doorbell.go), timers (clock), the queue pairs in line (qp
// and their carriers), transmission on the interfaces, and waiting clients. engine.go makes an
// engine, adds ports, and ends clients that can't be served; panic.go decides whether a panic is one
// client's; client.go adds clients and queue pairs.
//
// Everything here runs on the worker's thread; other goroutines use Engine.Do. The package must
// not know the control protocol, rdma_cm ids or configuration files; packages connect and control
// drive it. Its tests cover the turn and its clients. Other packages use enginetest for theirs.
package engine
