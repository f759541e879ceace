// Package model compares urdma with a second implementation. Random programs of libibverbs calls run on two queue
// pairs in each of two processes, connected (RC) or for datagrams (UD), and their results must be among those that a
// small model of the specification allows.
//
// The model (model.go, message.go, datagrams.go, memory.go) follows the manual pages of libibverbs, the parts of the
// InfiniBand specification that these cite, and docs/VERBS.md. It is pure and knows nothing of urdma. If timing
// decides between several results, it returns all of them. A program (program.go) is a list of calls; generate.go
// makes one from a seed, shrink.go shortens one that fails. testdata/interpreter.c executes the calls on any provider
// of libibverbs.
//
// A program that failed is printed as JSON; as a file in testdata/cases it runs in every later test. differences.go
// lists what providers may do differently, with the document that allows it.
package model
