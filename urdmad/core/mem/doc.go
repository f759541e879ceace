// Package mem is urdmad's registry of client memory: it maps STags to memory of clients, with access rights
// and the way in which urdmad accesses that memory.
//
// A Space is one client's memory: the files shared with urdmad, mapped here in views, and /proc/self/mem of
// the client for all other memory. The latter is accessed by the poll loop if the client is trusted
// (Direct), and otherwise by a goroutine of the Space, because a page of a client can block for ever. A
// Table maps STags to Regions. Tables and Regions belong to the worker; a Space maps files on control's
// goroutines.
//
// The package must not know queue pairs, packets or completions.
package mem
