// Package engine is one worker's poll loop: it owns the worker's rooms and knows
// the order in which they are served.
//
// loop.go is the turn: what other goroutines asked for, what is left of messages to
// groups (datagram), the interfaces' bursts (netif, then trp or datagram), sockets
// (mpa), fallback jobs (qp), doorbells (doorbell.go), timers (clock), the queue pairs
// in line (qp and their carriers), the interfaces' transmit side, and clients that
// wait. engine.go makes an engine and adds ports; client.go adds clients and queue
// pairs. tap.go has what captures are told of.
//
// Everything here runs on the worker's thread; other goroutines come in through
// Engine.Do. The package must not know the control protocol, rdma_cm ids or
// configuration files; packages connect and control drive it. Its tests are those of
// the turn and its clients; enginetest serves those of other packages as well.
package engine
