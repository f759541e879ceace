// Package release holds the test of packaging/release: the same bytes from two places,
// packages that Debian's lintian finds no errors in, programs for arm64 that run under
// qemu's user emulation, and fresh Debians that install it (fresh.sh). It takes minutes
// and downloads, so it runs with URDMA_LONG=1.
package release
