#!/bin/bash
# Types make demo as the first command in a fresh Debian that has make and
# nothing else of what the build needs, and looks for what its programs print.
#
#   test/fresh/demo.sh SUITE [KEEP]
#
# SUITE is bookworm or trixie, KEEP a directory for the fresh Debian, to start
# from the next time.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=$1
. "$here/test/fresh/tree.sh"

fresh_tree "${2:-}"
in_root sh -c 'cd && cd urdma && make demo' >"$work/demo.log" 2>&1 || { tail -40 "$work/demo.log"; exit 1; }
for row in 'ping data: rdma-ping-4' 't_typical' 'BW average'; do
	grep -F "$row" "$work/demo.log" || { tail -40 "$work/demo.log"; echo "make demo does not print: $row"; exit 1; }
done
