// Package model judges urdma by a second implementation: random programs of calls of libibverbs run on two queue
// pairs each of two processes, and what they lead to must be among what a small model of the specification allows.
//
// The model (model.go, message.go, memory.go) is written from the manual pages of libibverbs, the InfiniBand
// specification as these cite it, and docs/VERBS.md. It is pure, knows nothing of urdma, and gives a set of states
// where timing decides between several. A program (program.go) is a list of calls; generate.go makes one of a seed,
// shrink.go makes one that fails shorter. testdata/interpreter.c carries calls out on any provider of libibverbs.
//
// A program that failed is printed as JSON; as a file of testdata/cases it is run by every later test. What providers
// may do differently is in differences.go, with the place that allows it.
package model
