#!/bin/bash
# A fresh Debian that boots with its own systemd, in namespaces of its own and
# without a network. For scripts that source this and set
#
#   work   a directory of theirs; leave_fresh removes it
#   root   where the Debian is to be
#   suite  which Debian; bookworm if not set
#
# It is called, not sourced, as pid 1 of the new namespaces: --boot ROOT.
# shellcheck disable=SC2154
skip() { echo "SKIP: $*"; exit 77; }

# be_machine ROOT: turns the root into a machine and becomes its init.
be_machine() {
	local root=$1 name major minor
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	while read -r name major minor; do
		mknod -m 666 "$root/dev/$name" c "$major" "$minor"
	done <<-'NODES'
		null 1 3
		zero 1 5
		full 1 7
		random 1 8
		urandom 1 9
		tty 5 0
	NODES
	mkdir "$root/dev/shm" "$root/dev/pts" "$root/dev/net"
	mknod -m 666 "$root/dev/net/tun" c 10 200
	mount -t tmpfs tmpfs "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	mount -t tmpfs tmpfs "$root/tmp"
	exec env -i container=urdma-test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /lib/systemd/systemd --show-status=no
}

# able_to_boot: skips the test if this machine can't boot one.
able_to_boot() {
	local program
	[ "$(id -u)" = 0 ] || skip "root is needed, to install and boot a fresh Debian"
	for program in debootstrap unshare nsenter setpriv; do
		command -v $program >/dev/null || skip "$program is not installed"
	done
	grep -qw cgroup2 /proc/filesystems || skip "this kernel has no cgroup2"
	unshare --mount --pid --fork --uts --ipc --cgroup --net true 2>/dev/null || skip "namespaces cannot be made here"
	mkdir "$work/cgroup"
	unshare --mount --propagation private mount -t cgroup2 cgroup2 "$work/cgroup" 2>/dev/null || skip "nothing can be mounted here"
}

# ---- installing ----

# debian_sources: of the suite.
debian_sources() { "$here/packaging/sources" "${suite:-bookworm}"; }

# as_here: gives the fresh Debian this machine's settings of apt (sources, proxies), certificates and name servers.
as_here() {
	local sources certificates=/etc/ssl/certs/ca-certificates.crt
	sources=$(debian_sources)
	[ -z "$sources" ] || echo "$sources" >"$root/etc/apt/sources.list"
	apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' >"$root/etc/apt/apt.conf.d/90here"
	[ ! -e $certificates ] || install -D -m 644 $certificates "$root$certificates"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
}

# fresh PACKAGE,... [KEEP]: makes the root. KEEP is a directory that keeps a copy for the next time.
fresh() {
	local into=${2:-$root} http_proxy=${http_proxy:-} mirror
	if [ ! -e "$into/etc/fresh" ]; then
		eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
		[ -z "$http_proxy" ] || export http_proxy
		mirror=$(debian_sources | awk -v suite="${suite:-bookworm}" '$3 == suite { print $2; exit }')
		debootstrap --variant=minbase --include="$1" "${suite:-bookworm}" "$into" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 || {
			tail -3 "$work/debootstrap.log"
			skip "debootstrap found no Debian: no network?"
		}
		echo fresh >"$into/etc/hostname"
		echo '127.0.0.1 localhost fresh' >"$into/etc/hosts"
		touch "$into/etc/fresh"
	fi
	[ "$into" = "$root" ] || cp -a "$into" "$root"
	as_here
	in_root apt-get -q -o APT::Update::Error-Mode=any update >"$work/apt.log" 2>&1 || skip "apt-get update: $(tail -1 "$work/apt.log")"
}

# in_root COMMAND...: runs it before the boot, with a network.
in_root() {
	unshare --mount --propagation private sh -c 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$@"' \
		"$root" "$root" env -u TMPDIR DEBIAN_FRONTEND=noninteractive "$@"
}

# ---- running ----
machine=

boot() {
	local i group=$work/cgroup/${work##*/}
	mount -t cgroup2 cgroup2 "$work/cgroup"
	mkdir "$group"
	(
		echo $BASHPID >"$group/cgroup.procs"
		exec unshare --pid --mount --uts --ipc --cgroup --net --fork --kill-child --propagation private "${BASH_SOURCE[0]}" --boot "$root"
	) >"$work/boot.log" 2>&1 </dev/null &
	machine=$!
	for ((i = 0; i < 600; i++)); do
		first=$(pgrep -P "$machine" || true)
		[ -n "$first" ] && [ "$(inside systemctl is-system-running 2>/dev/null)" = running ] && return
		sleep 0.1
	done
	cat "$work/boot.log"
	fail "the fresh Debian does not boot: $(inside systemctl --failed --no-pager)"
}
inside() { nsenter -t "$first" -m -p -u -i -n -C -r -w env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"; }

# as USER COMMAND...: with the environment of a login.
as() {
	local id
	id=$(inside id -u "$1")
	inside setpriv --reuid "$1" --regid "$1" --init-groups env USER="$1" HOME="/home/$1" XDG_RUNTIME_DIR="/run/user/$id" "${@:2}"
}

leave_fresh() {
	local i
	[ -z "$machine" ] || kill -KILL "$machine" 2>/dev/null || true
	[ -z "$machine" ] || wait "$machine" 2>/dev/null || true
	if mountpoint -q "$work/cgroup"; then
		for ((i = 0; i < 20; i++)); do
			find "$work/cgroup/${work##*/}" -depth -type d -exec rmdir {} ';' 2>/dev/null && break
			sleep 0.1
		done
		umount "$work/cgroup" || true
	fi
	rm -rf --one-file-system "$work"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	set -euo pipefail
	[ "${1:-}" = --boot ] || { echo "$0 is to be sourced" >&2; exit 2; }
	be_machine "$2"
fi
