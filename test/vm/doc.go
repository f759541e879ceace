// Package vm holds the test of interworking with the kernel's iWARP: siw in a virtual
// machine of QEMU's, which emulates the processor, and urdmad on the host's end of a tap.
// build.sh makes the machine's kernel and root from Debian's packages.
//
// It takes minutes and a download, so it runs with URDMA_LONG=1. With -type it writes
// docs/interworking.md; else it compares.
package vm
