// Package ring gives Go the shared rings of verbs/abi/urdma_abi.h: send and
// receive queues, completion queues and doorbells, each from urdmad's side and
// from a client's side.
//
// A ring has one producer and one consumer. Each index is written by one side
// only; the writer stores it after the slot (release), the reader loads it
// before the slot (acquire). Go's atomics are sequentially consistent, which is
// more than that. urdmad's side trusts nothing it loads: it loads an index once
// into a private variable, checks it against its own, and copies a slot out
// before it looks at it.
//
// The package knows no object and no protocol.
package ring
