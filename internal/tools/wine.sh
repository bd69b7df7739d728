#!/bin/sh
# Brings Wine 10, which runs Windows programs, in a small Debian of its own: that of Debian
# 12 is too old for programs that Go makes.
#
#   internal/tools/wine.sh                  brings it, to .cache/wine
#   internal/tools/wine.sh PROGRAM ARG…     runs a program in the current directory
#   internal/tools/wine.sh --during CMD…    runs a command of this system while Wine is up
#
# It needs root, debootstrap and the machine's Debian mirror. Programs see the project, the
# temporary directory and Go's caches under their own paths.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
root=${STET_WINE:-$top/.cache/wine}

bring() {
	[ ! -e "$root/ready" ] || return 0
	[ "$(id -u)" = 0 ] || { echo "wine: needs root" >&2; exit 1; }
	command -v debootstrap >/dev/null || { apt-get update -qq && apt-get -o DPkg::Lock::Timeout=300 install -y -qq debootstrap >/dev/null; }
	mirror=$(cat $(find /etc/apt -name '*.sources' -o -name '*.list' | sort) </dev/null |
		awk '/^URIs:/ {print $2; exit} /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /^http/) {print $i; exit}}')
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	debootstrap --variant=minbase --include=ca-certificates trixie "$root" "$mirror" >"$root.log" 2>&1 ||
		{ tail -5 "$root.log" >&2; exit 1; }
	cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	cp -a /etc/ssl/certs/. "$root/etc/ssl/certs/"
	inside apt-get update -qq >>"$root.log" 2>&1
	inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends wine wine64 >>"$root.log" 2>&1 ||
		{ tail -5 "$root.log" >&2; exit 1; }
	rm -rf "$root"/var/cache/apt/archives/*.deb
	inside env WINEDEBUG=-all WINEPREFIX=/root/wine wineboot -i >>"$root.log" 2>&1
	inside env WINEPREFIX=/root/wine wineserver -w
	touch "$root/ready"
}

# inside runs a command in the root. Mounts are its own, and go with it. With exec=exec it
# takes the place of this script, so that signals reach it.
exec=
inside() {
	$exec env -u TMPDIR unshare -m sh -eu -c '
		root=$1 top=$2 here=$3; shift 3
		mount --make-rprivate /
		mount -t proc proc "$root/proc" 2>/dev/null || mount --bind /proc "$root/proc"
		mount --rbind /dev "$root/dev"
		for dir in /tmp "$top"; do mkdir -p "$root$dir" && mount --bind "$dir" "$root$dir"; done
		exec chroot "$root" sh -c "cd \"\$1\" 2>/dev/null || cd /; shift; exec \"\$@\"" sh "$here" "$@"
	' sh "$root" "$top" "$PWD" "$@"
}

if [ $# = 0 ]; then
	bring
	exit 0
fi
# Wine's services start with the first program, whose pipes they hold, and end with the last
# one: a program that waits for input keeps them for all that the command starts.
if [ "$1" = --during ]; then
	shift
	dir=$(mktemp -d) memory= group=
	trap 'exec 9>&-; wait; rm -rf "$dir" "$memory"; [ -z "$group" ] || echo "$group" >/proc/self/autogroup' EXIT
	trap 'exit 130' INT TERM
	# Windows' directory for temporary files is in memory, as that of other tests. Wine's
	# server opens all files, so a mount would have to be there before it.
	temp=$root/${STET_WINEPREFIX:-/root/wine}/drive_c/users/root/AppData/Local/Temp
	room=$(env -u TMPDIR "$top/internal/tools/memory.sh")
	if [ -n "$room" ]; then
		memory=$room-wine
		mkdir -p "$memory"
		rm -rf "$temp"
		ln -s "$memory" "$temp"
	elif [ -h "$temp" ]; then
		rm "$temp"
		mkdir "$temp"
	fi
	# Each call of a file is a conversation of two processes that sleep in between. On a busy
	# machine they would wait for their turn again and again: preferred they are six times as
	# fast, and take no more of it in all.
	group=$(sed -n 's/.* nice //p' /proc/self/autogroup 2>/dev/null || true)
	[ -z "$group" ] || echo -10 2>/dev/null >/proc/self/autogroup || group=
	mkfifo "$dir/in"
	"$0" cmd /c "set /p x=" <"$dir/in" >/dev/null 2>&1 &
	exec 9>"$dir/in"
	code=0
	"$@" 9>&- || code=$?
	exit $code
fi
exec=exec
inside env WINEDEBUG="${WINEDEBUG:--all}" WINEPREFIX="${STET_WINEPREFIX:-/root/wine}" wine "$@"
