// Package responder answers `urdma ping` from other hosts. It is a client of its own urdmad, in
// the same process, that listens at probe.Port and lends memory for Reads. The poll loop answers
// the Reads; no code of this package runs for them.
//
// The responder starts with the first request and stops when there has been none for a while, so
// that an unused responder has no listener and no client. The lent memory is limited per peer, in
// total, and by the limits of any client.
package responder
