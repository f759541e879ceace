// Package ring gives Go the shared rings of verbs/abi/urdma_abi.h: send and receive queues, completion queues
// and doorbells, both urdmad's side and the client's side.
//
// A ring has one producer and one consumer. Each index is written by one side only; the writer stores it
// after the slot (release), the reader loads it before the slot (acquire). Go's atomics are sequentially
// consistent, which is stronger. urdmad's side trusts nothing it loads: it loads an index once into a private
// variable, checks it against its own index, and copies a slot before it looks at the contents.
//
// The package knows no object and no protocol.
package ring
