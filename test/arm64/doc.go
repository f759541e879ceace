// Package arm64 holds the test of a second architecture: Go's unit tests, built with
// Debian's cross compiler and a root of Debian's packages, run under qemu's user emulation.
// It takes minutes and a download, so it runs with URDMA_LONG=1. test/release runs the
// programs of that architecture.
//
// What can't be seen there: weak memory order (qemu on x86 executes what the guest
// does in the host's stronger order; the argument stands beside each atomic), and
// what qemu doesn't emulate (see the lists in the test).
package arm64
