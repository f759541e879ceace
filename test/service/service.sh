#!/bin/bash
# Runs urdmad under a real systemd user instance, as an ordinary user, with a
# real journal: start, status line, socket activation by rping, reload, a
# watchdog that kills a process that stands still, a configuration that is
# wrong, restart, stop.
#
#   test/service/service.sh [BUILD]      (default: build)
#
# Needs root, for mounts of its own; exits with 77 and the reason where
# something is missing.
set -euo pipefail
build=$(realpath "${1:-build}")
here=$(cd "$(dirname "$0")/../.." && pwd)
user=nobody

skip() { echo "SKIP: $*"; exit 77; }

if [ -z "${URDMA_SERVICE_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || skip "root is needed, for a mount namespace with a cgroup tree and a journal of its own"
	[ -x /lib/systemd/systemd ] || skip "systemd is not installed"
	[ -x /lib/systemd/systemd-journald ] || skip "systemd-journald is not installed"
	grep -qw cgroup2 /proc/filesystems || skip "this kernel has no cgroup2"
	for program in unshare setpriv rping systemctl journalctl; do
		command -v $program >/dev/null || skip "$program is not installed"
	done
	refusal=$(unshare --mount --cgroup --pid --fork --mount-proc --propagation private true 2>&1) ||
		skip "no namespaces can be made here (in a chroot, / has to be a mount point): $refusal"
	for file in urdmad urdma liburdma.so; do
		[ -e "$build/$file" ] || { echo "$build/$file is missing: make build"; exit 1; }
	done
	work=$(mktemp -d)
	# Shells may have left the directory's parents closed to others.
	chmod 755 "$work"
	status=0
	URDMA_SERVICE_INSIDE=$work unshare --mount --cgroup --pid --fork --mount-proc --kill-child --propagation private "$0" "$build" || status=$?
	# All processes are gone with their pid namespace; its control groups are empty.
	mkdir "$work/cgroup"
	mount -t cgroup2 cgroup2 "$work/cgroup"
	find "$work/cgroup" -depth -type d '(' -path "$work/cgroup*/${work##*/}" -o -path "$work/cgroup*/${work##*/}/*" ')' -exec rmdir {} ';' 2>/dev/null || true
	umount "$work/cgroup"
	rm -rf --one-file-system "$work"
	exit $status
fi

# ---- inside: first process of a pid namespace, in which everything ends with us ----
work=$URDMA_SERVICE_INSIDE
unset URDMA_SERVICE_INSIDE
group=/sys/fs/cgroup/${work##*/}
export XDG_RUNTIME_DIR=$work/run HOME=$work/home LC_ALL=C SYSTEMD_PAGER= SYSTEMD_COLORS=0
unset NOTIFY_SOCKET LISTEN_FDS JOURNAL_STREAM URDMA_SOCKET DBUS_SESSION_BUS_ADDRESS || true

prepare() {
	umount -l /sys/fs/cgroup 2>/dev/null || true
	mount -t cgroup2 cgroup2 /sys/fs/cgroup || skip "cgroup2 cannot be mounted"
	mkdir -p /run/systemd "$group/user"
	mount -t tmpfs tmpfs /run/systemd
	mkdir -p /run/systemd/system /run/log/journal
	mount -t tmpfs tmpfs /run/log
	mkdir -p /run/log/journal /run/systemd/journald.conf.d
	printf '[Journal]\nStorage=volatile\nReadKMsg=no\n' >/run/systemd/journald.conf.d/test.conf
	mkdir -p "$XDG_RUNTIME_DIR" "$HOME/.config/urdma"
	chmod 700 "$XDG_RUNTIME_DIR"
	units=$HOME/.config/systemd/user
	DESTDIR= BUILD=$build PREFIX=$work/usr LIBDIR=$work/usr/lib MANDIR=$work/usr/share/man SYSCONFDIR=$work/etc \
		USERUNITDIR=$units SYSTEMUNITDIR=$work/usr/lib/systemd/system SYSUSERSDIR=$work/usr/lib/sysusers.d \
		UDEVRULESDIR=$work/usr/lib/udev/rules.d \
		"$here/packaging/install" >/dev/null
	# A watchdog with a time that suits a test, and a pause in which to see its effect.
	mkdir -p "$units/urdmad.service.d"
	printf '[Service]\nWatchdogSec=4\nTimeoutAbortSec=3\nRestartSec=3\n' >"$units/urdmad.service.d/test.conf"
	chown -R $user "$XDG_RUNTIME_DIR" "$HOME" "$group"
	chmod 755 "$HOME"
}

as_user() { setpriv --reuid=$user --regid=$(id -g $user) --clear-groups -- "$@"; }
ctl() { as_user systemctl --user --no-pager "$@"; }
show() { ctl show --property="$1" --value urdmad.service; }
journal() { journalctl -q --no-pager -D "/run/log/journal" _UID="$(id -u $user)" "$@"; }
urdma() { as_user "$work/usr/bin/urdma" "$@"; }
# background OUT PROGRAM...: runs it on urdmad; $! is the program itself, since each of these becomes the next.
background() {
	local out=$1
	shift
	setpriv --reuid=$user --regid="$(id -g $user)" --clear-groups -- "$work/usr/bin/urdma" exec -- "$@" >"$out" 2>&1 &
}

steps=0
pass() { steps=$((steps + 1)); echo "ok $steps - $*"; }
fail() {
	echo "---- systemctl status"; ctl status urdmad.service urdmad.socket 2>&1 | head -40 || true
	echo "---- journal"; journalctl -q --no-pager -D /run/log/journal 2>&1 | tail -30 || true
	echo "FAILED: $*"
	exit 1
}
# await WHAT COMMAND...: until the command succeeds, at most a minute.
await() {
	local what=$1 i
	shift
	for ((i = 0; i < 600; i++)); do
		"$@" && return
		sleep 0.1
	done
	fail "waited a minute for: $what"
}
is() { [ "$(show "$1")" = "$2" ]; }
listens() { urdma show listener | grep -F rping >/dev/null; }
says() { [[ $(show StatusText) == *"$1"* ]]; }
# No grep -q: under pipefail, a journalctl cut short would count as a failure.
logged() { journal "${@:2}" | grep -F -- "$1" >/dev/null; }

start_systemd() {
	/lib/systemd/systemd-journald 2>"$work/journald.log" &
	await "the journal" test -S /run/systemd/journal/socket
	(echo $BASHPID >"$group/user/cgroup.procs" && cd / && exec setpriv --reuid=$user --regid="$(id -g $user)" --clear-groups -- \
		/lib/systemd/systemd --user) >"$work/systemd.log" 2>&1 &
	await "the user's systemd" test -S "$XDG_RUNTIME_DIR/systemd/private"
	await "the user's systemd to answer" ctl daemon-reload 2>/dev/null
}

config() {
	cat >"$HOME/.config/urdma/urdma.json"
	chmod 644 "$HOME/.config/urdma/urdma.json"
}

# rping_once: a server and a client through urdma exec, both sides checked.
rping_once() {
	background "$work/server.out" rping -s -a 198.18.0.1 -p 9999 -C 20 -v
	local server=$! status=0 i
	# The server starts urdmad. The client must not be faster, so it tries again.
	for ((i = 0; i < 100; i++)); do
		if urdma exec -- timeout 20 rping -c -a 198.18.0.1 -p 9999 -C 20 -v >"$work/client.out" 2>&1; then
			status=0
			break
		fi
		status=1
		sleep 0.3
	done
	if [ $status != 0 ]; then
		cat "$work/server.out" "$work/client.out"
		kill $server 2>/dev/null || true
		return 1
	fi
	wait $server || { cat "$work/server.out"; return 1; }
	[ "$(grep -c '^ping data: rdma-ping-' "$work/client.out")" = 20 ]
}

prepare
start_systemd

# --- units are correct
as_user systemd-analyze --user --man=no verify "$HOME/.config/systemd/user/urdmad.service" >"$work/verify" 2>&1 || { cat "$work/verify"; fail "systemd-analyze verify"; }
[ ! -s "$work/verify" ] || { cat "$work/verify"; fail "systemd-analyze verify complains"; }
pass "the units are correct for systemd-analyze"

# --- start by hand, without any configuration
ctl start urdmad.service || fail "start"
is ActiveState active || fail "after start: $(show ActiveState)"
says "urdma0 198.18.0.1/24 up; 0 clients, 0 queue pairs" || fail "status line: $(show StatusText)"
pass "start: ready with the status line \"$(show StatusText)\""
socket=$XDG_RUNTIME_DIR/urdma/urdmad.sock
[ "$(stat -c %a "$socket")" = 600 ] || fail "the socket has mode $(stat -c %a "$socket")"
[ "$(show LimitMEMLOCK)" != "" ] || fail "no LimitMEMLOCK"
pass "the socket is the user's alone"

# --- the journal
await "the first lines in the journal" logged "urdmad is ready"
journal -o json URDMA_PORTS=1 | grep '"PRIORITY":"6"' >/dev/null || fail "no line with URDMA_PORTS=1 and priority 6"
journal -o json URDMA_PORTS=1 | grep '"SYSLOG_IDENTIFIER":"urdmad"' >/dev/null || fail "the line is not urdmad's"
pass "log lines reach the journal with priority and fields"

# --- stop: the socket stays with systemd
ctl stop urdmad.service 2>/dev/null || fail "stop"
is ActiveState inactive && is Result success || fail "after stop: $(show ActiveState), $(show Result)"
[ -S "$socket" ] || fail "the socket went away with the service"
pass "stop: the service ends with success, its socket stays"

# --- a program's first connection starts it
rping_once || fail "rping through socket activation"
is ActiveState active || fail "after rping: $(show ActiveState)"
pass "urdma exec -- rping starts urdmad through its socket, 20 pings"

# --- status follows the clients
background "$work/server.out" rping -s -a 198.18.0.1 -p 9998
server=$!
await "a client in the status line" says "; 1 client, "
await "the server to listen" listens
background "$work/client.out" rping -c -a 198.18.0.1 -p 9998 -C 1000000
client=$!
await "queue pairs in the status line" says "; 2 clients, 2 queue pairs"
pass "the status line follows: \"$(show StatusText)\""

# --- reload while they run
config <<'JSON'
{ "ports": [ { "vdev": "loopback", "ipv4_address": "198.18.0.1/24", "mtu": 1500 } ], "log_level": "debug", "limits": { "clients": 3 } }
JSON
ctl reload urdmad.service || fail "reload"
await "the reload's lines" logged "need_restart=1" URDMA_APPLIED=2
logged "reload: applied setting=log_level" URDMA_SETTING=log_level || fail "log_level is not told as applied"
logged "reload: applied setting=limits.clients from=256 to=3" URDMA_SETTING=limits.clients || fail "limits.clients is not told as applied"
logged "reload: needs a restart setting=ports[0].mtu running=9000 file=1500" PRIORITY=4 || fail "mtu is not told to need a restart"
is ActiveState active || fail "after reload: $(show ActiveState)"
kill -0 $client || { cat "$work/client.out"; fail "the reload broke a connection"; }
pass "reload applies what it can, names ports[0].mtu for a restart, and breaks no connection"

echo '{ "ports": [ { "vdev": "loopback", "ipv4_address": "198.18.0.1/24" } ], "log_level": "loud" }' | config
ctl reload urdmad.service && fail "the reload of a wrong file succeeds"
await "the reason of the failed reload" logged "urdma reload: refused: " SYSLOG_IDENTIFIER=urdma
await "the refusal in the status line" says "reload refused: $HOME/.config/urdma/urdma.json:1: log_level: found \"loud\""
is ActiveState active || fail "after a refused reload: $(show ActiveState)"
kill -0 $client || fail "the refused reload broke a connection"
pass "a wrong file is refused, and the status line says so"
kill $client
wait $client 2>/dev/null || true
kill $server 2>/dev/null || true
wait $server 2>/dev/null || true
await "clients to be gone" says "; 0 clients, 0 queue pairs"

# --- the watchdog: a process that stands still is killed and started again
config <<'JSON'
{ "ports": [ { "vdev": "loopback", "ipv4_address": "198.18.0.1/24" } ] }
JSON
ctl reload urdmad.service
sleep 9 # more than two intervals of an idle loop
is NRestarts 0 || fail "the watchdog killed a healthy urdmad"
pass "an idle urdmad feeds its watchdog"
first=$(show MainPID)
kill -STOP "$first"
await "the watchdog" is Result watchdog
await "the watchdog's restart" is NRestarts 1
await "urdmad to be ready again" is ActiveState active
[ "$(show MainPID)" != "$first" ] || fail "the same process goes on"
await "a trace of what stood still in the journal" logged "goroutine"
rping_once || fail "rping after the watchdog's restart"
pass "a urdmad that stands still is killed with a trace, started again, and serves"

# --- restart: programs are told at once, and the next connection works
background "$work/server.out" rping -s -a 198.18.0.1 -p 9997
server=$!
await "the server in the status line" says "; 1 client, "
await "the server to listen" listens
background "$work/client.out" rping -c -a 198.18.0.1 -p 9997 -C 1000000000
client=$!
await "queue pairs in the status line" says "; 2 clients, 2 queue pairs"
ctl restart urdmad.service || fail "restart"
gone() { ! kill -0 "$1" 2>/dev/null; }
await "the client to end" gone $client
await "the server to end" gone $server
wait $client && fail "the client of a stopped urdmad ended without an error"
wait $server || true
rping_once || fail "rping after a restart"
pass "restart: programs end with an error, and the next connection works"

# --- a configuration that is wrong stops it with status 2, without a loop
echo '{ "ports": [ { "vdev": "loopback", "ipv4_address": "127.0.0.300/24" } ], "sokket": 1 }' | config
ctl restart urdmad.service 2>/dev/null && fail "started with a wrong configuration"
is ExecMainStatus 2 || fail "exit status $(show ExecMainStatus), expected 2"
is NRestarts 0 || fail "a wrong configuration was tried $(show NRestarts) times more"
await "the error in the journal with priority 3" logged "urdma.json:1: ports[0].ipv4_address: found" PRIORITY=3
pass "a wrong configuration: exit status 2, one try, the error in the journal"
rm "$HOME/.config/urdma/urdma.json"
ctl reset-failed urdmad.service urdmad.socket 2>/dev/null || true
ctl start urdmad.socket

# --- a crash is no wrong configuration
ctl start urdmad.service || fail "start"
kill -QUIT "$(show MainPID)" # a Go program ends with a trace, as on a panic
await "the restart after a crash" is NRestarts 1
await "urdmad to be ready again" is ActiveState active
pass "a crash is followed by a restart"

# --- all away
ctl stop urdmad.socket urdmad.service || fail "stop"
[ ! -e "$socket" ] || fail "the socket is left"
[ ! -e "${socket%.sock}.sysfs" ] || fail "the sysfs tree is left"
pass "stop of socket and service leaves nothing"
echo "1..$steps"
