// Package responder answers `urdma ping` of other hosts: a client of its own
// urdmad, in its process, that listens at probe.Port and lends memory. The Reads
// of that memory are the poll loop's work; nothing here runs while they do.
//
// It begins when the first request comes and ends when nobody has been there
// for a while, so that a urdmad nobody asks has no listener and no client. What
// it lends is bounded: per peer, over all, and by the limits of any client.
package responder
