// Package hostile holds the tests that put hostile clients and a hostile network
// beside well-behaved programs on a real urdmad: it must neither fall, nor keep
// anything of theirs, nor give the others a wrong byte.
//
// The well-behaved pair is test/bystander; client_test.go is a hostile client (a
// process of its own: this test's program again), hostile_test.go starts, kills
// and counts. network_test.go is a hostile host (another such process), ends_test.go
// its places on a wire, hostile_network_test.go what has to hold out against it.
// URDMA_SEED sets the seed of the clients; URDMA_LONG=1 makes it ten minutes a wire.
package hostile
