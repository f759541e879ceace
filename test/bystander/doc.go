// Package bystander is a well-behaved connection for tests that disturb a urdmad: two programs write, read back,
// send and answer as fast as they can, and check every byte. The disturbance must not reach them.
//
// Serve is the end that offers memory and receives; Dial is the end that works. New runs both in the test's own
// process. Start runs each in a process of its own, which executes the test's program again (Main).
package bystander
