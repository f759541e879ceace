#!/bin/bash
# Builds the images of packaging/container with podman on a fresh Debian, and
# runs what docs/container.md says: two urdmads in containers on two networks,
# programs in containers of their own, nobody with a capability or as root, the
# default seccomp profile in force. Images can't be fetched here, so debootstrap
# makes the base.
#
#   test/container/podman.sh [KEEP]
#
# KEEP is a directory for the fresh Debian, to start from the next time. Needs
# root and the network; exits with 77 and the reason where something is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
. "$here/test/service/fresh.sh"
work=$(mktemp -d /var/tmp/urdma-podman.XXXXXX)
root=$work/root
holders=
leave() {
	rm -f "/var/run/cdi/urdma-test-$$.json"
	[ ! -e "$work/store" ] || engine rm --all --force --time 0 >/dev/null 2>&1 || true
	[ -z "$holders" ] || kill $holders 2>/dev/null || true
	[ ! -e "$work/store" ] || engine rmi --all --force >/dev/null 2>&1 || true
	leave_fresh
}
trap leave EXIT
[ "$(id -u)" = 0 ] || skip "root is needed, to install a fresh Debian"
for program in podman crun umoci debootstrap unshare nsenter ip; do
	command -v $program >/dev/null || skip "$program is not installed"
done
[ -n "$(debian_sources)" ] || skip "this machine is no Debian, so it knows no mirror"

# engine ARGUMENT...: podman with its own store. It needs only cgroups of version 2; a machine with both versions gets
# that in a mount namespace.
storage=overlay
engine() {
	local run='exec podman --runtime crun --root "$0/store" --runroot "$0/run" --cgroup-manager cgroupfs --storage-driver "$@"'
	if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
		sh -c "$run" "$work" $storage "$@"
	else
		unshare --mount --propagation private sh -c "mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && $run" "$work" $storage "$@"
	fi
}
# Without overlayfs, as in a container, each layer is a copy.
engine info >/dev/null 2>&1 || { rm -rf "$work/store" "$work/run"; storage=vfs; }
# podman raises limits, which the machine's root may not be allowed to.
limits="--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
contain() { engine run --cgroups disabled $limits --cap-drop all --security-opt no-new-privileges "$@"; }

fresh ca-certificates "${1:-}"
tar -C "$root" -c . | engine import - localhost/debian >/dev/null
contain --rm --network none localhost/debian true 2>"$work/first.log" || skip "podman starts no container here: $(tail -1 "$work/first.log")"
make -C "$here" deb >"$work/make.log" 2>&1 </dev/null || { tail -20 "$work/make.log"; echo "make deb"; exit 1; }
mkdir "$work/package"
cp "$here"/build/urdma_*.deb "$work/package/urdma.deb"
printf 'FROM scratch\nCOPY urdma.deb /urdma.deb\n' >"$work/package/Containerfile"
build() { engine build --isolation chroot --network host "$@" >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; echo "podman build $*"; exit 1; }; }
build -t localhost/urdma-package "$work/package"
build -t localhost/urdmad --build-arg BASE=localhost/debian --build-arg PACKAGE=localhost/urdma-package -f "$here/packaging/container/Containerfile" "$here"
build -t localhost/rdma-programs --build-arg BASE=localhost/debian -f "$here/packaging/container/Containerfile.program" "$here"

# Two networks on one cable; each container's default route leads to the other.
unshare --net sleep 3600 & a=$!
unshare --net sleep 3600 & b=$!
holders="$a $b"
for ((i = 0; i < 100; i++)); do
	[ "$(readlink /proc/$a/ns/net)" != "$(readlink /proc/self/ns/net)" ] && [ "$(readlink /proc/$b/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
	sleep 0.02
done
nsenter -t $a -n ip link add eth0 type veth peer name eth0 netns $b
for end in "$a 1 2" "$b 2 1"; do
	set -- $end
	nsenter -t "$1" -n sh -c "ip link set lo up && ip address add 10.66.0.$2/24 dev eth0 && ip link set eth0 up && ip route add default via 10.66.0.$3"
done

await() {
	local i
	for ((i = 0; i < 600; i++)); do
		engine exec "$1" urdma status >/dev/null 2>&1 && return
		sleep 0.1
	done
	engine logs "$1"
	echo "urdmad in container $1 is not ready"
	exit 1
}
contain -d --name a --network "ns:/proc/$a/ns/net" -v rdma-a:/run/rdma localhost/urdmad >/dev/null
contain -d --name b --network "ns:/proc/$b/ns/net" -v rdma-b:/run/rdma localhost/urdmad >/dev/null
await a
await b
program() { engine run --rm --cgroups disabled $limits --cap-drop all --security-opt no-new-privileges --network none -v "rdma-$1:/run/rdma" localhost/rdma-programs "${@:2}"; }
echo "== devices"
program a ibv_devices
echo "== urdmad to urdmad"
engine exec a urdma ping -c 3 -i 100ms 10.66.0.2
echo "== programs"
program a rping -s -a 10.66.0.1 -C 10 -v >"$work/server.log" 2>&1 & server=$!
for ((i = 0; i < 300; i++)); do
	# No grep -q: under pipefail, a command cut short would count as a failure.
	engine exec a urdma show listener | grep :7174 >/dev/null && break
	sleep 0.1
done
program b rping -c -a 10.66.0.1 -C 10 -v
wait $server || { cat "$work/server.log"; exit 1; }
echo "== CDI"
# A urdmad on the host, and a container that requests only the device.
bin=$here/build/deb/bin
mkdir -p /var/run/cdi
echo '{ "ports": [ { "vdev": "loopback", "ipv4_address": "198.18.0.1/24" } ], "socket": "'"$work"'/host/urdmad.sock", "socket_group": "4100" }' >"$work/urdma.json"
"$bin/urdmad" --config "$work/urdma.json" 2>"$work/urdmad.log" & holders="$holders $!"
"$bin/urdma" status --wait --socket "$work/host/urdmad.sock" >/dev/null || { cat "$work/urdmad.log"; exit 1; }
sed -e "s|@LIBDIR@|$(echo "$here"/build/deb/root/usr/lib/*/urdma)|g" -e "s|\"default\"|\"test-$$\"|" -e "s|/run/urdma|$work/host|g" \
	"$here/packaging/cdi.json" >"/var/run/cdi/urdma-test-$$.json"
device() { engine run --rm --cgroups disabled $limits --cap-drop all --security-opt no-new-privileges --network none --read-only --user 5001:4100 --device "urdma.dev/urdmad=test-$$" --entrypoint rping localhost/rdma-programs "$@"; }
device -s -a 198.18.0.1 -C 10 -v >"$work/device.log" 2>&1 & server=$!
for ((i = 0; i < 300; i++)); do
	"$bin/urdma" show listener --socket "$work/host/urdmad.sock" | grep :7174 >/dev/null && break
	sleep 0.1
done
device -c -a 198.18.0.1 -C 10 -v
wait $server || { cat "$work/device.log"; exit 1; }
echo "== read-only, the image of a release"
SOURCE_DATE_EPOCH=0 "$here/packaging/image" "$suite" "$work/package/urdma.deb" "$work/urdmad.oci.tar" >/dev/null 2>"$work/image.log" || { tail -5 "$work/image.log"; exit 1; }
engine load -i "$work/urdmad.oci.tar"
# podman's /run is a sticky tmpfs there, and members of socket_group may write to the volume's directory.
sed 's|"[^"]*urdmad.sock"|"/run/rdma/urdmad.sock"|' "$work/urdma.json" >"$work/urdma-c.json"
chmod 644 "$work/urdma-c.json"
contain -d --name c --read-only --network none -v rdma-c:/run/rdma -v "$work/urdma-c.json:/etc/urdma/urdma.json:ro" localhost/urdmad >/dev/null
await c
program c ibv_devices
echo "== Kubernetes"
make -C "$here" kubernetes >"$work/make.log" 2>&1 </dev/null || { tail -20 "$work/make.log"; echo "make kubernetes"; exit 1; }
mkdir -p "$work/program/src/build"
cp "$here/build/urdma-kubelet" "$work/program/src/build/"
printf 'FROM scratch\nCOPY src /src\n' >"$work/program/Containerfile"
build -t localhost/urdma-kubelet "$work/program"
build -t localhost/urdmad-kubernetes --build-arg BASE=localhost/debian --build-arg PROGRAM=localhost/urdma-kubelet -f "$here/packaging/container/Containerfile.kubernetes" "$here"
contain --rm --network none --read-only --entrypoint urdma-kubelet localhost/urdmad-kubernetes --version
echo "== done"
