#!/bin/bash
# For the scripts here, which source it: this tree in a fresh Debian that has make
# and nothing else of what the build needs.
#
# They set here, the tree, and suite, which Debian. It takes root and the network;
# where something is missing, the script ends with 77 and the reason.
# shellcheck disable=SC2154
. "$here/test/service/fresh.sh"
work=$(mktemp -d)
root=$work/root
trap leave_fresh EXIT

# fresh_tree [KEEP]: in /root/urdma of the fresh Debian. KEEP is a directory for
# that Debian, to start from the next time.
fresh_tree() {
	[ "$(id -u)" = 0 ] || skip "root is needed, to install a fresh Debian"
	command -v debootstrap >/dev/null || skip "debootstrap is not installed"
	[ -n "$(debian_sources)" ] || skip "this machine is no Debian, so it knows no mirror"
	fresh make,ca-certificates "${1:-}"
	mkdir "$root/root/urdma"
	(cd "$here" && git ls-files -co --exclude-standard -z | xargs -0 tar c --) | tar x -C "$root/root/urdma"
}
