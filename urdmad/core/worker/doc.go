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
//
// # Sleeping and yielding
//
// A worker sleeps in a raw ppoll and keeps its P (PrepareRuntime makes room for that).
//
// sched_yield(2) gives way only within a scheduling group, and a urdmad under systemd and a
// program in a terminal are in different ones (autogroup). So a client that polls on the
// CPU which the awake worker needs waits in futex(2) for 200 µs at most, having looked at
// all its queues (verbs/lib/datapath/yield.c); and a worker whose idle core a client polls
// on sleeps at once if eight yields in a row meet nobody (engine.Crowded). In sessions of
// their own on two cores ib_send_lat took 21 to 27 µs so, and 60 to 105 before.
//
// How long is short is measured at start, in some 10 ms (measure.go): a yield that lets
// nobody run, a sleep, a wake-up, and whether a thread that comes from a sleep lets others
// run by yielding, which before Linux 6.6 it may not for milliseconds. Where a single yield
// takes more than 0.5 µs, one counts as having met somebody from three times that, for
// programs too (yield_alone in the doorbell page). Where a sleep takes more than 40 µs, a
// worker yields ten times as long before it sleeps, unless polling.yield_us is set. Where
// yields don't let the waiting thread run, one failed yield beside a polling program makes
// the worker sleep, not eight. urdma status shows all of it. What could not be measured, on a
// busy machine, changes nothing.
package worker
