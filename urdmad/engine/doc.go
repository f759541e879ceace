// Package engine is one worker's poll loop: it owns the worker's rooms and knows
// the order in which they are served.
//
// loop.go is the turn: what other goroutines asked for, the interfaces (netif,
// trp), fallback jobs (qp), doorbells (client.go), timers (clock), the queue
// pairs in line (qp and their carriers, trp and samehost), and the interfaces'
// transmit side. tap.go shows frames to who captures them, tap_local.go makes up
// those that same-host connections do without.
//
// Everything here runs on the worker's thread; other goroutines come in through
// Engine.Do. The package must not know the control protocol, rdma_cm ids or
// configuration files; packages connect and control drive it.
package engine
