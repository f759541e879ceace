#!/bin/sh
# Unpacks Debian's arm64 packages, those that the build needs, into a directory.
# Nothing is installed; apt keeps its lists and downloads below that directory.
#
#   root.sh DIRECTORY
set -eu
dir=$1
mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/root"
options="-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Debug::NoLocking=1
	-o Dir::State::lists=$dir/lists -o Dir::Cache=$dir/cache -o Dir::State::status=/dev/null"
apt-get $options update
apt-get $options -y -d --no-install-recommends install libdpdk-dev libibverbs-dev librdmacm-dev libc6-dev rdmacm-utils
for package in "$dir"/cache/archives/*.deb; do
	case $package in
	*/perl* | */libperl* | */python* | */libpython*) ;; # not of the build
	*) dpkg -x "$package" "$dir/root" ;;
	esac
done
