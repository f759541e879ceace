#!/bin/sh
# Three hosts on one Ethernet switch, each with its own urdmad, as an ordinary user: in user and network namespaces,
# which disappear with the command.
#
#   examples/lab.sh                  a shell; on N COMMAND runs one on host N
#   examples/lab.sh 'COMMAND...'     a shell's command line
#
# Host N is 10.9.0.N. Needs make build, iproute2 and util-linux.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
: "${URDMA_BUILD:=$here/build}"
export URDMA_BUILD

if [ "${1:-}" != --inside ]; then
	for program in urdmad urdma liburdma.so; do
		[ -e "$URDMA_BUILD/$program" ] || { echo "$0: there is no $URDMA_BUILD/$program; make build" >&2; exit 1; }
	done
	lab=$(mktemp -d)
	trap 'rm -rf "$lab"' EXIT
	export lab
	unshare --user --map-root-user --net --mount --pid --fork --kill-child --mount-proc "$0" --inside "$@" || exit $?
	exit
fi
shift

PATH=$lab/bin:$URDMA_BUILD:$PATH
export PATH
mkdir "$lab/bin"
# on N COMMAND...: in host N's network, with host N's urdmad.
cat >"$lab/bin/on" <<'END'
#!/bin/sh
n=$1
shift
URDMA_SOCKET=$lab/$n.sock exec nsenter --net="/proc/$(cat "$lab/$n.pid")/ns/net" -- "$@"
END
chmod +x "$lab/bin/on"

ip link set lo up
ip link add switch type bridge
ip link set switch up
for n in 1 2 3; do
	unshare --net sh -c 'echo $$ >"$0"; exec sleep infinity' "$lab/$n.pid" &
	until [ -s "$lab/$n.pid" ]; do sleep 0.01; done
	ip link add "port$n" type veth peer name eth0 netns "$(cat "$lab/$n.pid")"
	ip link set "port$n" master switch up
	on $n ip link set lo up
	on $n ip link set eth0 up
	cat >"$lab/$n.json" <<END
{ "ports": [ { "vdev": "net_af_packet0,iface=eth0", "ipv4_address": "10.9.0.$n/24" } ], "socket": "$lab/$n.sock" }
END
	on $n urdmad --config "$lab/$n.json" >"$lab/$n.log" 2>&1 &
done
for n in 1 2 3; do
	tries=0
	until on $n urdma status >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || { cat "$lab/$n.log"; echo "$0: the urdmad of host $n is not ready" >&2; exit 1; }
		sleep 0.1
	done
done
if [ $# -gt 0 ]; then
	sh -c "$*"
else
	echo 'Hosts 1, 2 and 3 are 10.9.0.1 to 10.9.0.3; on N COMMAND runs one there, such as: on 1 urdma ping 10.9.0.2'
	"${SHELL:-sh}"
fi
