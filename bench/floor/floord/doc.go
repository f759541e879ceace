// Command floord is the Go daemon of the floor bench: the same rings and the
// same rules as floor/daemon.c, run by package worker. It shows what Go's runtime adds
// to the floor. The bench starts it; it isn't run by hand.
package main
