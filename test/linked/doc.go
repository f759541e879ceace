// Package linked has test ports: pairs joined by wires in memory, on a virtual clock.
//
// A Network owns the clock, the events on it and the only source of randomness. A Wire is one direction of a pair;
// it loses, repeats, reorders, corrupts and delays frames as its Path says. The same seed and the same calls give
// the same run.
//
// The ports behave like real ones where that can reveal a mistake: rings and buffer pools are bounded, no frame
// leaves before Flush, a freed buffer is overwritten, and Options.Misuse is called for a buffer that is used
// against the ownership rules of package port.
//
// The package does not know the engine. Of protocols it knows only where IPv4 and UDP have their checksums, for
// ports that offer to compute them.
package linked
