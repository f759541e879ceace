#!/bin/bash
# Types make demo as the first command in a fresh Debian that has make and
# nothing else of what the build needs, and looks for the table at its end.
#
#   test/fresh/demo.sh SUITE [KEEP]
#
# SUITE is bookworm or trixie, KEEP a directory for the fresh Debian, to start
# from the next time. Needs root and the network; exits with 77 and the reason
# where something is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=$1
. "$here/test/service/fresh.sh"
work=$(mktemp -d)
root=$work/root
trap leave_fresh EXIT
[ "$(id -u)" = 0 ] || skip "root is needed, to install a fresh Debian"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
[ -n "$(debian_sources)" ] || skip "this machine is no Debian, so it knows no mirror"

fresh make,ca-certificates "${2:-}"
mkdir "$root/root/urdma"
(cd "$here" && git ls-files -co --exclude-standard -z | xargs -0 tar c --) | tar x -C "$root/root/urdma"
in_root sh -c 'cd && cd urdma && make demo' >"$work/demo.log" 2>&1 || { tail -40 "$work/demo.log"; exit 1; }
for row in 'rping   1000 pings' 'Send, 2 bytes' 'RDMA Read, 64 KiB'; do
	grep -F "$row" "$work/demo.log" || { tail -40 "$work/demo.log"; echo "make demo does not print: $row"; exit 1; }
done
