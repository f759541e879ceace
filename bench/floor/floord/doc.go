// Command floord is a Go daemon for the floor bench, with the same rings and rules as floor/daemon.c, run by
// package worker. It shows what Go's runtime adds to the latency. The bench starts it; it isn't run by hand.
package main
