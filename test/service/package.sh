#!/bin/bash
# Installs the Debian package in a fresh Debian, boots that with its own
# systemd in namespaces of its own, and lets users run rping: on a urdmad of
# their own and on the system's. Then purges the package and looks for what is
# left.
#
#   test/service/package.sh PACKAGE.deb [KEEP]
#
# KEEP is a directory for the fresh Debian, to use it again. Needs root and the
# network; exits with 77 and the reason where something is missing.
set -euo pipefail
skip() { echo "SKIP: $*"; exit 77; }
fail() {
	echo "---- journal"
	inside journalctl -q --no-pager 2>/dev/null | tail -30 || true
	echo "FAILED: $*"
	exit 1
}
steps=0
pass() { steps=$((steps + 1)); echo "ok $steps - $*"; }

# ---- second call: pid 1 of new namespaces makes the root a machine's ----
if [ "${1:-}" = --boot ]; then
	root=$2
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
fi

deb=$(realpath "${1:?PACKAGE.deb}")
self=$(realpath "$0")
[ "$(id -u)" = 0 ] || skip "root is needed, to install and boot a fresh Debian"
for program in debootstrap unshare nsenter setpriv; do
	command -v $program >/dev/null || skip "$program is not installed"
done
work=$(mktemp -d)
chmod 755 "$work"
root=${2:-$work/root}
machine=
cleanup() {
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
trap cleanup EXIT

fresh() {
	[ ! -e "$root/etc/debian_version" ] || return 0
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,libpam-systemd,procps,iproute2,rdmacm-utils \
		bookworm "$root" >"$work/debootstrap.log" 2>&1 || {
		tail -3 "$work/debootstrap.log"
		skip "debootstrap found no Debian: no network?"
	}
	# Where this machine gets its packages from, security updates included.
	rm -f "$root/etc/apt/sources.list"
	cp -r /etc/apt/sources.list* "$root/etc/apt/"
}

# in_root: before it is booted.
in_root() {
	unshare --mount --propagation private sh -c 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$@"' \
		"$root" "$root" env DEBIAN_FRONTEND=noninteractive "$@"
}

boot() {
	mkdir -p "$work/cgroup"
	mount -t cgroup2 cgroup2 "$work/cgroup"
	mkdir "$work/cgroup/${work##*/}"
	(
		echo $BASHPID >"$work/cgroup/${work##*/}/cgroup.procs"
		exec unshare --pid --mount --uts --ipc --cgroup --net --fork --kill-child --propagation private "$self" --boot "$root"
	) >"$work/boot.log" 2>&1 </dev/null &
	machine=$!
	local i
	for ((i = 0; i < 300; i++)); do
		first=$(pgrep -P "$machine" || true)
		[ -n "$first" ] && [ "$(inside systemctl is-system-running 2>/dev/null)" = running ] && return
		sleep 0.1
	done
	cat "$work/boot.log"
	fail "the fresh Debian does not boot: $(inside systemctl --failed --no-pager)"
}
inside() { nsenter -t "$first" -m -p -u -i -n -C -r -w env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
# as USER COMMAND...: with the environment of a login.
as() {
	local id
	id=$(inside id -u "$1")
	inside setpriv --reuid "$1" --regid "$1" --init-groups env XDG_RUNTIME_DIR="/run/user/$id" HOME="/home/$1" "${@:2}"
}
system_status() { inside systemctl show -P StatusText urdmad.service; }

# ping USER: rping with itself, by whichever urdmad it finds.
ping() {
	as "$1" urdma exec -- rping -s -a 198.18.0.1 -C 10 >"$work/server.out" 2>&1 &
	local server=$! i
	for ((i = 0; i < 20; i++)); do
		as "$1" urdma exec -- timeout 20 rping -c -a 198.18.0.1 -C 10 -v >"$work/client.out" 2>&1 && break
		sleep 0.3
	done
	wait $server || { cat "$work/server.out"; return 1; }
	[ "$(grep -c '^ping data: rdma-ping-' "$work/client.out")" = 10 ] || { cat "$work/client.out"; return 1; }
}

fresh
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "$deb" "$root/root/urdma.deb"
in_root apt-get -q update >"$work/apt.log" 2>&1 || skip "apt-get update: $(tail -1 "$work/apt.log")"
in_root apt-get install -q -y --no-install-recommends /root/urdma.deb >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log"; fail "installation"; }
in_root getent passwd urdma >/dev/null || fail "there is no user urdma"
[ "$(in_root systemctl is-enabled urdmad.service)" = disabled ] || fail "the installation enabled the service"
in_root urdma config check /etc/urdma/urdma.json >/dev/null || fail "the configuration installed is wrong"
for name in alice bob; do
	in_root useradd --create-home $name 2>/dev/null || true
done
in_root usermod -a -G urdma alice
pass "the package installs in a fresh Debian, and enables nothing"

boot
inside ip link set lo up
id=$(inside id -u bob)
inside systemctl start "user@$id.service" || fail "bob's systemd"
as bob systemctl --user start urdmad.service || fail "systemctl --user start urdmad"
as bob systemctl --user show -P StatusText urdmad.service | grep -F "urdma0 198.18.0.1/24 up; 0 clients" >/dev/null || fail "bob's status line"
ping bob || fail "bob's rping"
pass "systemctl --user start urdmad, then rping as bob"
as bob systemctl --user stop urdmad.service urdmad.socket || fail "systemctl --user stop"

inside systemctl enable --now urdmad.socket 2>/dev/null || fail "enabling the system's socket"
ping alice || fail "alice's rping on the system's urdmad"
inside systemctl is-active --quiet urdmad.service || fail "the system's urdmad does not run"
[ "$(inside ps -o user= -C urdmad)" = urdma ] || fail "the system's urdmad runs as $(inside ps -o user= -C urdmad)"
pass "the system's urdmad starts by its socket, as user urdma, for a member of group urdma"
as bob urdma exec -- rping -c -a 198.18.0.1 -C 1 >"$work/client.out" 2>&1 && fail "bob, no member, reached the system's urdmad"
pass "it refuses who is no member"

inside ip link add urdma-a type veth peer name urdma-b
inside ip link set urdma-a up
inside ip link set urdma-b up
for device in net_af_packet0,iface=urdma-a net_tap0,iface=urdma-t; do
	printf '{ "ports": [ { "vdev": "%s", "ipv4_address": "10.9.0.1/24" } ], "polling": { "nice": -5 } }\n' $device |
		inside sh -c 'cat >/etc/urdma/urdma.json'
	inside systemctl restart urdmad.service || fail "$device under the unit's restrictions"
	[[ $(system_status) == "urdma0 10.9.0.1/24 "* ]] || fail "$device: status line $(system_status)"
done
pass "af_packet and tap open under the unit's restrictions"

inside systemctl stop urdmad.socket urdmad.service || fail "stop"
inside env DEBIAN_FRONTEND=noninteractive apt-get purge -q -y urdma >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log"; fail "purge"; }
inside getent passwd urdma >/dev/null && fail "user urdma is left"
inside find / -xdev -name '*urdma*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/root/*' -not -path '/var/log/*' >"$work/left"
[ ! -s "$work/left" ] || { cat "$work/left"; fail "the purge left these"; }
pass "the package purges, and leaves nothing"
echo "1..$steps"
