// Package arm64 tests a second architecture: it builds Go's unit tests with Debian's cross compiler and a root
// of Debian's packages, and runs them under qemu's user emulation. It takes minutes and a download, so it runs
// with URDMA_LONG=1. test/release runs the programs of that architecture.
//
// It can't show errors of weak memory order, because qemu on x86 executes the guest in the host's stronger order;
// a comment at each atomic operation argues for it instead. Nor can it test calls that qemu doesn't emulate (see
// the lists in the test).
package arm64
