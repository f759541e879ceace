// Package lab sets up urdmads joined by wires and runs programs on them, for
// the end-to-end tests, the demo and the benchmarks. A lab owns a temporary
// directory and every process started in it: Close ends them all by their
// process ids and removes the directory, and should the lab's own process be
// killed, the kernel ends them (PR_SET_PDEATHSIG, prctl(2)).
//
// It knows urdma from outside only: the files of build/, urdma.json, and what
// /proc tells about a process.
package lab
