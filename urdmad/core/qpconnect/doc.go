// Package qpconnect connects queue pairs whose programs exchanged numbers and addresses themselves and call
// ibv_modify_qp (docs/WIRE.md chapter 9).
//
// manager.go has the queue pairs that look for their peer or are connected. attempt.go connects to a peer
// in the same urdmad, or sends requests. packet.go handles requests and replies. end.go handles established
// and ended connections.
//
// The package is pure, like package cm: its input is calls, messages of package handshake and the time,
// and its effects go through Network. It must not know the engine, sockets, rings or the ABI. All calls
// come on the worker's thread.
package qpconnect
