#!/bin/sh
# Runs a command with a file system on which README and Readme are one name: exFAT, without
# permission bits and links, in a file of 256 MB. STET_FOLDING names its directory.
#
#   internal/tools/folding.sh go test ./checkpoint
#
# It needs root, /dev/fuse and a loop device, and installs exfat-fuse and exfatprogs. The
# mount belongs to the command and goes with it.
set -eu
[ "$(id -u)" = 0 ] || { echo "folding: needs root" >&2; exit 1; }
[ -e /dev/fuse ] && [ -e /dev/loop-control ] || { echo "folding: needs /dev/fuse and loop devices" >&2; exit 1; }
if ! command -v mount.exfat-fuse mkfs.exfat >/dev/null; then
	apt-get update -qq && apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends exfat-fuse exfatprogs >/dev/null
fi
work=$(mktemp -d)
loop=
end() {
	code=$?
	umount "$work/mount" 2>/dev/null || umount -l "$work/mount" 2>/dev/null || true
	[ -z "$loop" ] || losetup -d "$loop" || true
	rm -rf --one-file-system "$work"
	exit $code
}
trap end EXIT
trap 'exit 130' INT TERM
mkdir "$work/mount"
truncate -s 256M "$work/image"
mkfs.exfat "$work/image" >/dev/null
loop=$(losetup -f --show "$work/image")
mount.exfat-fuse "$loop" "$work/mount" >/dev/null 2>&1
STET_FOLDING=$work/mount "$@"
