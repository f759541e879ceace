#!/bin/sh
# Builds a Linux with the kernel's siw and rxe, programs that use them and what network cards need,
# from Debian's packages: a kernel and an initramfs, which is the whole of its root. Nothing is installed and root
# is not needed; apt keeps its lists and downloads below the directory.
#
#   build.sh DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
exec 9>"$dir/lock"
flock 9
echo_c=$here/../../verbs/lib/cm/test/testdata/rsockets/echo.c # a program with ordinary sockets
stamp=$(cat "$0" "$here"/guest/* "$echo_c" | sha256sum)
[ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ] || exit 0

programs='bash coreutils util-linux mount grep procps iproute2 socat busybox-static ibverbs-providers
	rdmacm-utils ibverbs-utils perftest qperf udev iputils-ping iperf3 isc-dhcp-client'
options="-q -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::State::lists=$dir/lists
	-o Dir::Cache=$dir/cache -o Dir::State::status=/dev/null"
apt-get $options update
release=$(apt-cache $options depends linux-image-amd64 | sed -n 's/.*Depends: linux-image-\([0-9][^ ]*\)$/\1/p' | head -1)
version=${release%%-*}
version=${version%.*}
# With the dependencies of the packages in the first line.
apt-get $options -y -d --no-install-recommends install $programs
(cd "$dir/cache/archives" && apt-get $options download "linux-image-$release" "linux-headers-$release" \
	"linux-headers-${release%-amd64}-common" "linux-source-$version" "linux-kbuild-$version")

work=$dir/work
rm -rf "$work"
mkdir -p "$work/root" "$work/kernel"
for package in "$dir"/cache/archives/*.deb; do
	name=$(basename "$package")
	case $name in
	linux-source-*)
		dpkg-deb --fsys-tarfile "$package" | tar -xO "./usr/src/linux-source-$version.tar.xz" | xz -dc |
			tar -x -C "$work/kernel" --strip-components=4 --wildcards '*/drivers/infiniband/sw/siw/*'
		;;
	linux-*) dpkg -x "$package" "$work/kernel" ;;
	*perl* | *python* | dpkg_* | apt_* | debconf*) ;; # libraries for packages' scripts
	*) dpkg -x "$package" "$work/root" ;;
	esac
done

# Debian's kernels lack siw. Its constants become parameters of the module.
headers=$work/kernel/usr/src/linux-headers-$release
ln -sfn "../usr/lib/linux-kbuild-$version" "$work/kernel/lib/linux-kbuild-$version"
sed -i "s#/usr/src/#$work/kernel/usr/src/#" "$headers/Makefile"
siw=$work/kernel/siw
sed -i -E 's/^extern const bool/extern bool/' "$siw/siw.h"
sed -i -E 's/^const bool ([a-z_]+)( = true)?;/bool \1\2;\nmodule_param(\1, bool, 0444);/
	s/^(u_char mpa_version = .*;)/\1\nmodule_param(mpa_version, byte, 0444);/' "$siw/siw_main.c"
make -s -C "$headers" M="$siw" CONFIG_RDMA_SIW=m modules
strip --strip-debug "$siw/siw.ko"

root=$work/root
rm -rf "$root/usr/share" "$root/var"
mkdir -p "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/var"
depmod=$(PATH=$PATH:/sbin:/usr/sbin command -v depmod)
"$depmod" -b "$work/kernel" "$release"
for module in virtio_pci virtio_net ib_core ib_uverbs rdma_ucm rdma_rxe iw_cm libcrc32c crc32c_generic crc32_generic \
	vfio_pci vfio_iommu_type1 tun e1000 e1000e igb vmxnet3; do
	"${depmod%depmod}modprobe" -d "$work/kernel" -S "$release" --show-depends $module
done | sed -n 's/^insmod //p' | awk '!seen[$1]++ { print $1 }' | while read -r module; do
	cp "$module" "$root/modules/"
	basename "$module" >>"$root/modules/order"
done
cp "$siw/siw.ko" "$root/modules/"
printf 'root:x:0:0:root:/:/bin/bash\nuser:x:1000:1000::/tmp:/bin/bash\n' >"$root/etc/passwd"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
[ -e "$root/bin/sh" ] || ln -s bash "$root/bin/sh"
install -m755 "$here/guest/init" "$here/guest/agent" "$root/"
install -m755 "$here/guest/use-siw" "$here/guest/use-rxe" "$root/usr/bin/"
gcc-12 -O1 -o "$root/usr/bin/wirevec" "$here/guest/wirevec.c" -lrdmacm -libverbs
gcc-12 -O1 -o "$root/usr/bin/socketecho" "$echo_c"
cp "$root/usr/bin/wirevec" "$root/usr/bin/socketecho" "$root/bin/busybox" "$dir/"
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$dir/initrd"
cp "$work/kernel/boot/vmlinuz-$release" "$dir/vmlinuz"
rm -rf "$work"
echo "$stamp" >"$dir/stamp"
