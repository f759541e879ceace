// Package fresh holds the tests of a first hour: machines that have nothing yet,
// and what brings them what the Makefile needs.
//
//	demo.sh   a fresh Debian whose first command is make demo
//	mpi.sh    ... in which test/mpi passes
package fresh
