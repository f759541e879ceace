// Package soak keeps two urdmads busy with everything that programs do: connections, transfers and sudden deaths,
// next to a checked pair of programs. Again and again, when only that pair is left, it counts memory, descriptors,
// mappings and threads of the urdmads, which must not grow.
//
// In make test it runs for eight seconds each over memif, and over UDP with two workers; with URDMA_LONG=1
// for three minutes each, also over TCP and over memif with two workers. URDMA_SOAK=1h sets another length,
// URDMA_SEED the seed.
package soak
