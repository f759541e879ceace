// Package worker runs a poll loop on a thread of its own. It calls the loop turn after turn, and between
// turns decides whether to continue at once, to yield the core, or to sleep until something happens.
//
// The ladder from spinning to sleep (ladder.go) is a pure function of the times that it is given; its
// limits were measured (docs/design/scheduling.md). measure.go measures how slow this machine is, and machine.go
// extends the limits accordingly. worker.go applies the ladder, sleep.go waits, thread.go sets up the
// thread.
//
// The package owns the thread, the wake-up descriptor and the set of kick sockets. It must not know
// packets, rings or clients, which belong to the loop.
//
// # Sleeping and yielding
//
// A worker sleeps in a raw ppoll and keeps its P (PrepareRuntime adds Ps for that).
//
// sched_yield(2) gives the core only to threads of the same scheduling group, and a urdmad under systemd
// and a program in a terminal are in different groups (autogroup). So a client that polls on the CPU which
// the worker needs waits in futex(2) for at most 200 µs after it has polled all its queues
// (verbs/lib/datapath/yield.c). And an idle worker on whose core a client polls sleeps at once if eight
// consecutive yields let no other thread run (engine.Crowded). In separate sessions on two cores,
// ib_send_lat took 21 to 27 µs with this, and 60 to 105 µs before.
//
// The machine's speed is measured at start, in about 10 ms (measure.go): a yield that lets no other thread
// run, a sleep, a wake-up, and whether a thread that has just slept lets others run by yielding, which
// before Linux 6.6 it may not do for milliseconds. If a single yield takes more than 0.5 µs, a yield counts
// as having let another thread run from three times that duration on, for programs too (yield_alone in the
// doorbell page). If a sleep takes more than 40 µs, a worker yields ten times as long before it sleeps,
// unless polling.yield_us is set. If sched_yield does not run the waiting thread, the worker sleeps after
// one failed yield instead of eight while a program polls on its core. urdma status shows all of these. A
// value that could not be measured, on a busy machine, changes nothing.
package worker
