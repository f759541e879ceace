// Package fresh tests the first commands of a new user on machines on which nothing is installed yet:
//
//	demo.sh   make demo as the first command on a fresh Debian
//	mpi.sh    test/mpi on a fresh Debian
package fresh
