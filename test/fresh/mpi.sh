#!/bin/bash
# Runs test/mpi in a fresh Debian that has nothing but what .ci/deps mpi installs.
#
#   test/fresh/mpi.sh SUITE [KEEP]
#
# SUITE is bookworm (Debian 13's Open MPI has no openib), KEEP a directory for the
# fresh Debian, to start from the next time.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=$1
. "$here/test/fresh/tree.sh"

fresh_tree "${2:-}"
in_root sh -c 'mount -t sysfs -o ro sysfs /sys && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /tmp &&
	cd && cd urdma && .ci/deps mpi && make build && URDMA_BUILD=$PWD/build .ci/go test -v -count=1 -timeout 60m ./test/mpi' \
	>"$work/mpi.log" 2>&1 || { tail -60 "$work/mpi.log"; exit 1; }
grep -E '^ *--- |^ok' "$work/mpi.log"
