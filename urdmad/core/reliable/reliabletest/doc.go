// Package reliabletest runs two connections of package reliable against each other
// over a simulated network on a virtual clock. All chance comes from one
// seed, so a failure is repeated, with a trace, by running its seed again.
//
// Peer does what package trp does with a Conn, in the same order, and checks
// every byte that is delivered. Link is one direction of a network: rate,
// delay, a finite queue, and faults. World holds the clock and the events.
package reliabletest
