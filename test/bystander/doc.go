// Package bystander is a well-behaved connection for tests that do something to a
// urdmad: two programs that write, read back, send and answer as fast as they get
// on, and check every byte. What happens to others must not reach them.
//
// Serve is the end that lends memory and receives, Dial the one that works. New
// has both in the test's own process, Start each in a process of its own, which is
// the test's program again (Main).
package bystander
