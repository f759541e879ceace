// Package release tests packaging/release: the files must be equal byte for byte when built in two directories,
// Debian's lintian must find no errors in the packages, the programs for arm64 must run under qemu's user emulation,
// and fresh Debians must be able to install the release (fresh.sh). It takes minutes and downloads, so it runs with
// URDMA_LONG=1.
package release
