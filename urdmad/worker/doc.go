// Package worker runs a poll loop on a thread of its own: it asks the loop for
// turn after turn, and between turns decides whether to go on at once, to yield
// the core or to sleep until something happens.
//
// The ladder from spinning to sleep (ladder.go) is a pure function of the times
// it is told; bench/floor measured what its rungs should be. measure.go finds
// out how slow this machine is, and machine.go makes the rungs as long as that
// takes. worker.go climbs the ladder, sleep.go waits, thread.go sets up the thread.
//
// The package owns the thread, the wake-up descriptor and the set of kick
// sockets. It must not know packets, rings or clients: those are the loop's.
package worker
