// Package soak holds the test that keeps two urdmads busy with all that programs
// do, connects, transfers and violent deaths, beside a checked pair, and counts
// again and again what they have while nothing but that pair is left: memory,
// descriptors, mappings and threads must not grow.
//
// A quarter of a minute each over memif, and over UDP with two workers, in make test; three with
// URDMA_LONG=1, and over TCP and memif with two workers too. URDMA_SOAK=1h sets another
// length, URDMA_SEED the seed.
package soak
