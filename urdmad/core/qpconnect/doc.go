// Package qpconnect joins queue pairs whose programs exchanged numbers and
// addresses themselves and call ibv_modify_qp: docs/WIRE.md chapter 9.
//
// manager.go holds the queue pairs that look for their peer or have found it,
// attempt.go joins a peer in the same urdmad and asks for any other, packet.go
// takes requests and accepts, end.go hears of connections that were established
// or ended.
//
// The package is pure, as package cm is, whose packets it speaks: calls,
// packets and the time come in, effects go out through Network. It must not
// know the engine, sockets, rings or the ABI. All calls come on the worker's
// thread.
package qpconnect
