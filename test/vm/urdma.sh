#!/bin/sh
# Packs urdma's programs, with the libraries and DPDK's drivers that they load here, to
# follow the machine's initramfs.
#
#   urdma.sh BUILD FILE
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
libraries=/usr/lib/$(gcc -print-multiarch)

# put LIBRARY: the file, and the links that lead to it.
put() {
	real=$(readlink -f "$1")
	mkdir -p "$root${real%/*}" "$root$libraries"
	cp "$real" "$root$real"
	[ -e "$root$libraries/${1##*/}" ] || ln -s "$real" "$root$libraries/${1##*/}"
}

mkdir -p "$root/usr/bin" "$root/etc" "$root/usr/lib/udev/rules.d"
cp -a "$1/urdmad" "$1/urdma" "$1/liburdma.so" "$1/liburdma.d" "$root/usr/bin/"
drivers=
for name in bus_pci bus_vdev mempool_ring net_e1000 net_virtio net_vmxnet3; do
	for driver in "$libraries"/dpdk/pmds-*/librte_$name.so.*; do
		put "$driver"
		[ -e "$root$driver" ] || ln -s "$(readlink -f "$driver")" "$root$driver"
		drivers="$drivers $driver"
	done
done
for library in $(ldd "$1/urdmad" $drivers | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | grep -vE '/lib(c|m|pthread)\.so'); do
	put "$library"
done
cp "$here/systemd/udev/60-urdma.rules" "$root/usr/lib/udev/rules.d/"
printf 'root:x:0:\nuser:x:1000:\nurdma-nic:x:999:user\n' >"$root/etc/group"
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$2"
