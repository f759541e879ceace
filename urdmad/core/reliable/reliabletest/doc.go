// Package reliabletest runs two connections of package reliable against each other
// over a simulated network with a virtual clock. All randomness comes from one
// seed, so running a failed seed again repeats the failure, with a trace.
//
// Peer uses a Conn as package trp does, in the same order of calls, and checks
// every delivered byte. Link is one direction of a network: rate, delay, a
// finite queue, and faults. World has the clock and the events.
package reliabletest
