// Package vm has the tests that need a kernel of their own, in a virtual machine of QEMU, which emulates the
// processor. One tests interworking with the kernel's iWARP and RoCE (siw, rxe); urdmad runs on the host's end of a
// tap. The other tests network cards; urdmad runs in the machine and drives them. build.sh makes the machine's
// kernel and root from Debian's packages, urdma.sh adds urdma's files.
//
// They take minutes and a download, so they run with URDMA_LONG=1. With -type they write the tables of
// docs/interworking.md and docs/nics.md; without, they compare.
package vm
