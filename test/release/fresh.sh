#!/bin/bash
# Has a fresh Debian get urdma in every way that the documentation names, from a release
# that is served at ADDRESS as GitHub and any web server would, and run programs on it.
#
#   test/release/fresh.sh SUITE ADDRESS JOB [KEEP]
#
# JOB is the program of test/container/manifests/job; KEEP a directory for the fresh
# Debian, to start from the next time. bob may use sudo, eve may not.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
suite=$1 address=$2
. "$here/test/service/fresh.sh"
work=$(mktemp -d)
root=$work/root
trap leave_fresh EXIT
[ "$(id -u)" = 0 ] || skip "root is needed, to install a fresh Debian"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
[ -n "$(debian_sources)" ] || skip "this machine is no Debian, so it knows no mirror"
fresh sudo,curl,ca-certificates,xz-utils,rdmacm-utils,ibverbs-utils,perftest "${4:-}"
in_root sh -c 'useradd -m bob; useradd -m eve; echo "bob ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/bob'
mkdir "$root/urdma" "$root/job"
(cd "$here" && tar c action.yml Makefile packaging) | tar x -C "$root/urdma"
cp "$3" "$here"/examples/ci/*.yml "$here/test/release/testdata/github.yml" "$root/job/"

# as USER NAME=VALUE... COMMAND...
as() {
	in_root setpriv --reuid "$1" --regid "$1" --init-groups env --chdir=/ HOME="/home/$1" USER="$1" URDMA_SERVER="$address" \
		"${@:2}" 2>&1 | tee "$work/said"
}
says() { grep -F -- "$1" "$work/said" >/dev/null || { echo "FAILED: it does not say: $1"; exit 1; }; }
# lines HEADING [FOLDER]: the block of docs/container.md below it, with the address, of a folder of the release.
lines() {
	awk -v heading="$1" '/^## /{ ours = $0 == "## " heading } ours && /^```/{ block = !block; next } ours && block' "$here/docs/container.md" |
		sed "s|ADDRESS|$address/${2:-apt}|g; s|RELEASE|$address/OWNER/urdma/releases/download/v0.1.0|"
}
pings() { says 'ping data: rdma-ping-9'; echo "ok - $suite: $*"; }

as eve bash -ec "cd; $(lines 'Without root')"
pings "eve, without root"
elsewhere=$(in_root find / -xdev -type f -user eve -newer /etc/sudoers.d/bob -not -path '/home/eve/.local*' -not -path '/home/eve/urdma-*')
[ -z "$elsewhere" ] || { echo "FAILED: $elsewhere is outside ~/.local"; exit 1; }
as eve INSTALL=tarball FROM= /job/job /job/github.yml /urdma
says 'BW average'
pings "the action, without root"
as bob /job/job /job/github-actions.yml /urdma
pings "the example for GitHub, with sudo"
as root HOME=/root URDMA_RELEASE="$address/OWNER/urdma/releases/download/v0.1.0" sh -c 'cd && /job/job /job/gitlab-ci.yml'
pings "the example for GitLab"
in_root sh -c 'rm -rf /usr/local/*' # where it was installed
as bob bash -ec "cd; $(lines 'Debian packages')"
pings "the apt repository, with sudo"
in_root apt-get purge -q -y urdma >/dev/null
in_root rm /etc/apt/sources.list.d/urdma.list /etc/apt/keyrings/urdma.asc
as bob INSTALL=apt FROM="$address/apt" /job/job /job/github.yml /urdma
says 'BW average'
pings "the action, by apt"

# Debian's dnf, and a package that says what a Linux of RPM packages has, since here Debian's own has it.
in_root apt-get purge -q -y urdma >/dev/null
in_root apt-get install -q -y --no-install-recommends dnf rpm >/dev/null
in_root mkdir -p /etc/yum.repos.d /etc/rpm
# rpm 4.20 gives scriptlets mounts of their own, which takes a root that is a mount point.
echo '%__transaction_unshare %{nil}' >"$root/etc/rpm/macros.chroot"
in_root sh -ec "
	curl -fsS -o /urdma.rpm $address/dnf/urdma-0.1.0-1.$(uname -m).rpm
	{
		printf '%s\n' 'Name: system' 'Version: 1' 'Release: 1' 'Summary: of this test' 'License: none' 'BuildArch: noarch' 'Provides: librdmacm-utils'
		rpm -qp --requires /urdma.rpm | sed '/^rpmlib/d; /^config/d; s/^/Provides: /'
		printf '%s\n' '%description' 'none' '%files'
	} >/system.spec
	rm /urdma.rpm
	rpmbuild -bb --quiet --define '_rpmdir /' /system.spec
	# Debian 12's rpm installs a package only with --force-debian, which Debian 13's does not know.
	rpm -i --force-debian /noarch/system-1-1.noarch.rpm || rpm -i /noarch/system-1-1.noarch.rpm"
as bob bash -ec "cd; $(lines 'RPM packages' dnf)"
pings "the dnf repository, with sudo"
in_root rpm -V urdma
as bob sudo dnf remove -q -y urdma
left=$(in_root find /etc /usr /var -name '*urdma*' ! -path '/etc/yum.repos.d/*' ! -path '/etc/apt/*' ! -path '/var/*/apt/*' ! -path '/var/*/dnf/*')
[ -z "$left" ] || { echo "FAILED: dnf left $left"; exit 1; }
