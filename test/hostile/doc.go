// Package hostile holds the tests that put hostile clients beside well-behaved
// ones on a real urdmad: it must neither fall, nor keep anything of theirs, nor
// give the others a wrong byte.
//
// The well-behaved pair is test/bystander; client_test.go is a hostile client (a
// process of its own: this test's program again), hostile_test.go starts, kills
// and counts. URDMA_SEED sets the seed; URDMA_LONG=1 makes it ten minutes a
// wire.
package hostile
