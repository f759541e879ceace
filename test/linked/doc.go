// Package linked holds test ports: pairs joined by wires in memory, on a
// virtual clock.
//
// A Network owns the clock, the events on it and the only source of
// randomness; a Wire is one direction of a pair and loses, repeats, reorders,
// corrupts and delays frames as its Path says. The same seed and the same calls
// give the same run.
//
// The ports behave like real ones where it can catch a mistake: rings and
// buffer pools are bounded, nothing leaves before Flush, a freed buffer is
// overwritten, and a buffer used against the ownership rules of package port
// is reported to Options.Misuse.
//
// The package knows nothing of the engine and little of protocols: only where
// IPv4 and UDP keep their checksums, for ports that offer to compute them.
package linked
