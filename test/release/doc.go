// Package release holds the test of packaging/release: the same bytes from two places,
// which Debian's lintian finds no errors in. It takes minutes, so it runs with
// URDMA_LONG=1.
package release
