// Package arm64 holds the test of a second architecture: the whole tree is built
// for it, with Debian's cross compiler and a root of Debian's packages, and its unit
// tests, with a urdmad and programs among them, run under qemu's user emulation.
// It takes minutes and a download, so it runs with URDMA_LONG=1.
//
// What can't be seen there: weak memory order (qemu on x86 executes what the guest
// does in the host's stronger order; the argument stands beside each atomic), and
// what qemu doesn't emulate (see the lists in the test).
package arm64
