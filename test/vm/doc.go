// Package vm holds the tests that want a kernel of their own, in a virtual machine of
// QEMU's, which emulates the processor: of interworking with the kernel's iWARP and RoCE (siw, rxe, with
// urdmad on the host's end of a tap), and of network cards, which urdmad in the machine
// drives. build.sh makes the machine's kernel and root from Debian's packages, urdma.sh
// what urdma adds.
//
// They take minutes and a download, so they run with URDMA_LONG=1. With -type they write
// the tables of docs/interworking.md and docs/nics.md; else they compare.
package vm
