// Package mem is urdmad's registry of client memory: which STag names which
// bytes of which client, which accesses are allowed, and by which path urdmad
// reaches them.
//
// A Space is one client's memory: the files it shares with urdmad (mapped here
// in views) and, for all other memory, its /proc/self/mem. That is read and
// written by the poll loop if the client is trusted (Direct), and else by a goroutine
// of the Space, because a page of a client can block for ever. A Table maps STags to Regions. Tables
// and Regions belong to the worker; a Space maps files from the control side.
//
// The package must not know queue pairs, packets or completions.
package mem
