#!/bin/bash
# Types the lines of docs/service.md into the shell of an
# ordinary user of a fresh Debian, booted with its own systemd, and checks what
# each brings about. Then the manual pages and the wrong configurations, the
# system's urdmad, its upgrade, and a purge that has to leave nothing.
#
#   test/service/package.sh [PACKAGE.deb [KEEP]]
#
# Without PACKAGE.deb, or where it is "", docs/service.md's "make deb" builds it. KEEP
# is a directory for the fresh Debian, to start from the next time. Needs root
# and the network; exits with 77 and the reason where something is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/test/service/fresh.sh"
typed= # file with the last output in bob's shell
steps=0
pass() { steps=$((steps + 1)); echo "ok $steps - $*"; }
fail() {
	[ -z "$typed" ] || { echo "---- what bob saw last"; cat "$typed"; }
	[ -z "$machine" ] || { echo "---- journal"; inside journalctl -q --no-pager 2>/dev/null | tail -30 || true; }
	echo "FAILED: $*"
	exit 1
}
# await WHAT COMMAND...: until the command succeeds, at most so many seconds.
patience=120
await() {
	local what=$1 i
	shift
	for ((i = 0; i < patience * 10; i++)); do
		"$@" && return
		sleep 0.1
	done
	fail "waited $patience s for: $what"
}

work=$(mktemp -d)
chmod 755 "$work"
root=$work/root
trap leave_fresh EXIT
able_to_boot

# ---- docs/service.md's lines ----
walk=() # without their comments
while IFS= read -r line; do
	walk+=("$(sed 's/  *#.*//' <<<"$line")")
done < <(awk '/^## /{ ours = $0 == "## From a checkout to a running service" } ours && /^```/{ block = !block; next } ours && block' "$here/docs/service.md")
[ ${#walk[@]} -gt 0 ] || fail "docs/service.md has no lines of code below \"From a checkout …\""
line_of() { printf '%s\n' "${walk[@]}" | grep "^$1" || fail "docs/service.md has no line that begins with \"$1\""; }

# types LINE: into bob's shell. Its output, and that of programs in the background, goes to $typed. Returns the line's
# status.
lines=0
types() {
	lines=$((lines + 1))
	typed=$root/home/bob/typed/$lines
	printf 'exec >~/typed/%d 2>&1\n%s\necho $? >~/typed/%d.status\n' $lines "$1" $lines >&"$keyboard"
	patience=300 await "the end of: $1" test -s "$typed.status"
	return "$(cat "$typed.status")"
}
prints() { grep -F -- "$1" "$typed" >/dev/null || fail "${2:-$line} does not print: $1"; }
bobs() { as bob systemctl --user show -P "$1" "urdmad.${2:-service}"; }
bob_status() { [[ $(bobs StatusText) == *"$1"* ]]; }
bob_shows() { [ "$(as bob urdma show "$1" 2>/dev/null | grep -c "$2")" = "$3" ]; }
journal_of_bob() { inside journalctl -q --no-pager _UID="$(inside id -u bob)" "${@:2}" | grep -F -- "$1" >/dev/null; }

# step LINE: types it, and makes the checks for this line.
did=
step() {
	local line=$1 want
	types "$line" || fail "$line: status $?"
	case $line in
	"sudo apt-get install "*)
		did+=" install"
		inside getent passwd urdma >/dev/null || fail "there is no user urdma"
		inside id -nG urdma | grep -qw urdma-nic || fail "user urdma is no member of group urdma-nic"
		[ "$(inside systemctl is-enabled urdmad.service)" = disabled ] || fail "the installation enabled the service"
		inside urdma config check /etc/urdma/urdma.json >/dev/null || fail "the configuration installed is wrong"
		;;
	"mkdir -p "*) did+=" mkdir" ;;
	"echo "*"urdma.json") did+=" write" ;;
	"urdma config check "*)
		did+=" check"
		prints "/home/bob/.config/urdma/urdma.json: correct"
		;;
	"systemctl --user start urdmad")
		did+=" start"
		[ "$(bobs ActiveState)" = active ] || fail "after start: $(bobs ActiveState)"
		;;
	"systemctl --user status urdmad")
		did+=" status"
		prints "Active: active (running)"
		prints 'Status: "urdma0 198.18.0.1/24 up; 0 clients, 0 queue pairs"'
		;;
	"urdma exec -- rping -s "*"&")
		did+=" server"
		await "rping to listen" bob_shows listener rping 1
		;;
	"urdma exec -- rping -c "*"&")
		did+=" client"
		await "their connection" bob_shows connection " connected " 2
		await "the status line" bob_status "; 2 clients, 2 queue pairs"
		;;
	"urdma exec -- rping -c "*" -C 5")
		did+=" five"
		[ "$(grep -c '^ping data: rdma-ping-[0-4]: ' "$typed")" = 5 ] || fail "these are not five pings"
		await "their end" bob_shows connection rping 0
		;;
	"urdma show qp")
		did+=" show"
		[ "$(awk 'NR > 1 && / RTS / && $NF == "rping"' "$typed" | wc -l)" = 2 ] && [ "$(wc -l <"$typed")" = 3 ] ||
			fail "these are not two connected queue pairs of rping"
		;;
	"curl http"*)
		did+=" metrics"
		for want in 'urdma_port_up{port="urdma0"} 1' 'urdma_port_mtu_bytes{port="urdma0"} 9000' urdma_port_receive_packets_total{ \
			urdma_retransmitted_segments_total{ 'urdma_port_info{address="198.18.0.1/24",driver="loopback",' \
			'urdma_clients 2' 'urdma_queue_pairs{' 'urdma_connections{state="connected"} 2' '# TYPE urdma_messages_total counter'; do
			prints "$want"
		done
		;;
	"sed -i "*) did+=" edit" ;;
	"systemctl --user reload urdmad")
		did+=" reload"
		await "the reload's lines in the journal" journal_of_bob "need_restart=0" URDMA_APPLIED=1
		bob_status "; 2 clients, 2 queue pairs" || fail "the reload broke a connection: $(bobs StatusText)"
		;;
	"journalctl --user "*)
		did+=" journal"
		prints "reload: applied setting=log_level"
		prints "applied=1 need_restart=0"
		;;
	"kill "*)
		did+=" kill"
		await "both rpings to be gone" bob_status "; 0 clients, 0 queue pairs"
		;;
	"systemctl --user stop urdmad")
		did+=" stop"
		[ "$(bobs ActiveState) $(bobs Result)" = "inactive success" ] || fail "after stop: $(bobs ActiveState), $(bobs Result)"
		[ "$(bobs ActiveState socket)" = active ] || fail "its socket is $(bobs ActiveState socket)"
		;;
	*) fail "docs/service.md has a line for which this test has no check: $line" ;;
	esac
	pass "$line"
}

# ---- the package and the fresh Debian ----
deb=${1:-}
make_deb=$(line_of make)
if [ -z "$deb" ]; then
	(cd "$here" && eval "$make_deb") >"$work/make.log" 2>&1 </dev/null || { tail -20 "$work/make.log"; fail "$make_deb"; }
	debs=("$here"/build/urdma_*.deb)
	[ ${#debs[@]} = 1 ] && [ -e "${debs[0]}" ] || fail "$make_deb left ${#debs[@]} packages: ${debs[*]}"
	deb=${debs[0]}
	pass "$make_deb"
fi
deb=$(realpath "$deb")

# ping USER: rping with itself, on the urdmad that it finds.
ping() {
	as "$1" urdma exec -- rping -s -a 198.18.0.1 -C 10 >"$work/server.out" 2>&1 &
	local server=$! i
	for ((i = 0; i < 100; i++)); do
		as "$1" urdma exec -- timeout 20 rping -c -a 198.18.0.1 -C 10 -v >"$work/client.out" 2>&1 && break
		sleep 0.3
	done
	wait $server || { cat "$work/server.out"; return 1; }
	[ "$(grep -c '^ping data: rdma-ping-' "$work/client.out")" = 10 ] || { cat "$work/client.out"; return 1; }
}

fresh systemd,systemd-sysv,dbus,libpam-systemd,procps,iproute2,sudo,man-db "${2:-}"
for name in alice bob; do
	in_root useradd --create-home --shell /bin/bash $name
done
echo 'bob ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/bob"
echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/90yes" # a person would answer so
in_root setpriv --reuid bob --regid bob --clear-groups mkdir -p /home/bob/checkout/build /home/bob/typed
cp "$deb" "$root/home/bob/checkout/build/"
# Its dependencies, while there is a network: the booted machine has none.
install=$(line_of "sudo apt-get install")
in_root bash -c "cd /home/bob/checkout && ${install#sudo } --download-only" >"$work/apt.log" 2>&1 ||
	{ tail -20 "$work/apt.log"; fail "fetching what the package depends on"; }
boot
inside ip link set lo up
inside systemctl start "user@$(inside id -u bob).service" || fail "bob's systemd"
pass "a fresh Debian has booted, and bob has logged in"

# ---- the walk ----
mkfifo "$work/keyboard"
as bob bash <"$work/keyboard" >"$work/shell.out" 2>&1 &
exec {keyboard}>"$work/keyboard"
echo "cd ~/checkout" >&"$keyboard"
for line in "${walk[@]}"; do
	[ "$line" = "$make_deb" ] || step "$line"
done
all=" install mkdir write check start status server five client show metrics edit reload journal kill stop"
[ "$did" = "$all" ] || fail "docs/service.md's lines are now$did; this test expected$all"

ping bob || fail "bob's rping after the stop"
[ "$(bobs ActiveState)" = active ] || fail "the socket did not start the service"
pass "the socket that is left starts the service for the next program"
as bob systemctl --user stop urdmad.service urdmad.socket || fail "systemctl --user stop"
[ -z "$(inside find "/run/user/$(inside id -u bob)" -name 'urdmad.*')" ] || fail "the socket is left"

# ---- a start that fails ----
as bob sh -c 'cd ~/.config/urdma && mv urdma.json ~/right.json && echo "{ \"ports\": 1 }" >urdma.json'
as bob systemctl --user start --no-block urdmad.service
types "urdma status --wait=5m" && fail "urdma status --wait found a urdmad that cannot start"
prints "systemd's urdmad.service did not start: failed: " "urdma status --wait"
inside mv /home/bob/right.json /home/bob/.config/urdma/urdma.json
pass "urdma status --wait ends with the reason where the service fails"

# ---- pages and wrong configurations ----
for page in urdma urdmad urdma.json; do
	types "MANPAGER=cat MANWIDTH=80 man --warnings $page 2>~/typed/warnings" || fail "man $page"
	[ ! -s "$root/home/bob/typed/warnings" ] || { cat "$root/home/bob/typed/warnings"; fail "man $page has warnings"; }
	for want in "${page^^}(" Name Description "See also"; do
		prints "$want" "man $page"
	done
done
pass "man urdma, urdmad and urdma.json are rendered without a warning"

types 'echo "{ \"ports\": [ { \"vdev\": \"loopback\", \"ipv4_address\": \"198.18.0.1/24\", \"mtu\": 90000 } ] }" >~/wrong.json; urdma config check ~/wrong.json' &&
	fail "urdma config check accepts a wrong file"
prints "/home/bob/wrong.json:1: ports[0].mtu: found 90000, allowed: an integer from 576 to 9600 (bytes)" "urdma config check"
cp -r "$here/config/testdata/bad" "$root/home/bob/bad"
as bob sh -c 'cd ~/bad && for file in *.json; do
	status=0; said=$(urdma config check "$file" 2>&1) || status=$?
	[ $status = 2 ] && [ "$said" = "$(cat "${file%.json}.error")" ] || echo "$file: status $status: $said"
done' >"$work/differ"
[ ! -s "$work/differ" ] || { cat "$work/differ"; fail "urdma config check says something else than config/testdata/bad/*.error"; }
pass "urdma config check refuses $(find "$root/home/bob/bad" -name '*.json' | wc -l) wrong files with file, line, path, what was found and what is allowed"
exec {keyboard}>&-

# ---- the machine's own ----
inside usermod -a -G urdma alice
inside systemctl enable --now urdmad.socket 2>/dev/null || fail "enabling the system's socket"
ping alice || fail "alice's rping on the system's urdmad"
inside systemctl is-active --quiet urdmad.service || fail "the system's urdmad does not run"
[ "$(inside ps -o user= -C urdmad)" = urdma ] || fail "the system's urdmad runs as $(inside ps -o user= -C urdmad)"
pass "the system's urdmad starts by its socket, as user urdma, for a member of group urdma"
as bob urdma exec -- rping -c -a 198.18.0.1 -C 1 >"$work/client.out" 2>&1 && fail "bob, no member, reached the system's urdmad"
pass "it refuses who is no member"

# ---- an upgrade under running programs ----
dpkg-deb -R "$deb" "$work/newer"
sed -i 's/^Version: .*/&+newer/' "$work/newer/DEBIAN/control"
dpkg-deb -Zgzip --root-owner-group --build "$work/newer" "$root/home/bob/newer.deb" >/dev/null
as alice urdma exec -- timeout 300 rping -s -a 198.18.0.1 >"$work/server.out" 2>&1 &
server=$!
alice_shows() { [ "$(as alice urdma show "$1" 2>/dev/null | grep -c "$2")" = "$3" ]; }
await "alice's rping to listen" alice_shows listener rping 1
as alice urdma exec -- timeout 300 rping -c -a 198.18.0.1 -V >"$work/client.out" 2>&1 &
client=$!
await "alice's connection" alice_shows connection " connected " 2
inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -q /home/bob/newer.deb >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log"; fail "the upgrade"; }
for program in server client; do
	status=0
	wait "${!program}" || status=$?
	[ $status != 0 ] && [ $status != 124 ] || fail "status $status of the $program whose urdmad was upgraded"
	grep -F 'urdmad has ended, or was restarted, under this program' "$work/$program.out" >/dev/null ||
		{ cat "$work/$program.out"; fail "the $program whose urdmad was upgraded does not say so"; }
done
ping alice || fail "alice's rping after the upgrade"
[[ $(inside dpkg-query -W -f '${Version}' urdma) == *+newer ]] || fail "the package was not upgraded"
pass "an upgrade ends the programs that run with a message of what to do, and new ones work at once"

inside ip link add urdma-a type veth peer name urdma-b
inside ip link set urdma-a up
inside ip link set urdma-b up
for device in net_af_packet0,iface=urdma-a net_tap0,iface=urdma-t; do
	printf '{ "ports": [ { "vdev": "%s", "ipv4_address": "10.9.0.1/24" } ], "polling": { "nice": -5 } }\n' $device |
		inside sh -c 'cat >/etc/urdma/urdma.json'
	inside systemctl restart urdmad.service || fail "$device under the unit's restrictions"
	status=$(inside systemctl show -P StatusText urdmad.service)
	[[ $status == "urdma0 10.9.0.1/24 "* ]] || fail "$device: status line $status"
done
pass "af_packet and tap open under the unit's restrictions"

inside systemctl stop urdmad.socket urdmad.service || fail "stop"
inside env DEBIAN_FRONTEND=noninteractive apt-get purge -q urdma >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log"; fail "purge"; }
inside getent passwd urdma >/dev/null && fail "user urdma is left"
inside getent group urdma-nic >/dev/null && fail "group urdma-nic is left"
# Files in users' home directories stay.
inside find / -xdev -name '*urdma*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/home/*' -not -path '/var/log/*' >"$work/left"
[ ! -s "$work/left" ] || { cat "$work/left"; fail "the purge left these"; }
pass "the package purges, and leaves nothing"
echo "1..$steps"
