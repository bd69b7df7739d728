#!/bin/sh
# Boots a systemd of its own and waits until it ends. It needs root.
#
#   deploy/units/boot.sh DIR TARGET
#
# Processes, mounts, network, cgroups and the host name are its own. Its files are those
# of this system, with what DIR/files has above them; what it writes is gone afterwards,
# but for /out, which is DIR/out.
set -eu
dir=$1 target=$2

inside() {
	mount -t tmpfs tmpfs "$dir/root"
	cd "$dir/root"
	mkdir above work files
	mount -t overlay -o lowerdir=/,upperdir=above,workdir=work overlay files
	cd files
	cp -a "$dir/files/." .
	mount -t proc proc proc
	mount --bind proc/sys proc/sys # settings of the kernel stay as they are
	mount -o remount,bind,ro proc/sys
	mount -t sysfs -o ro sysfs sys
	mount -t cgroup2 cgroup2 sys/fs/cgroup
	mount -t tmpfs -o mode=755 tmpfs dev
	for device in null zero full random urandom tty; do
		: >"dev/$device"
		mount --bind "/dev/$device" "dev/$device"
	done
	ln -s /proc/self/fd dev/fd
	mkdir dev/pts dev/shm dev/mqueue dev/hugepages
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
	ln -s pts/ptmx dev/ptmx
	mount -t tmpfs tmpfs run
	mount -t tmpfs tmpfs tmp
	mkdir -p out
	mount --bind "$dir/out" out
	: >etc/machine-id
	mount --make-rshared "$PWD" # units see the mounts of credentials
	exec env -i container=stet PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd --system "--unit=$target" --log-target=journal
}

if [ "${3:-}" = inside ]; then
	inside
fi
cgroups=/sys/fs/cgroup
if [ -d "$cgroups/unified" ]; then
	cgroups=$cgroups/unified
fi
own=$cgroups/stet-units-$$
mkdir -p "$dir/root" "$dir/out"
mkdir "$own"
# A cgroup that still has processes cannot be removed: they have been killed, but may not
# be gone yet.
trap 'echo $$ >"$cgroups/cgroup.procs"; for try in 1 2 3 4 5; do find "$own" -depth -type d -exec rmdir {} + 2>/dev/null && break; sleep 0.2; done' EXIT
echo $$ >"$own/cgroup.procs"
code=0
unshare --mount --pid --fork --kill-child=KILL --uts --ipc --net --cgroup sh "$0" "$dir" "$target" inside </dev/null || code=$?
exit $code
