#!/bin/sh
# Prints the path of versitygw: a bucket as people run them, for tests, not part of the
# product. It is built where it is not there yet, below .cache: its source is a module
# of its own, which no command for the packages of stet must meet.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
source=$root/internal/tools/versitygw
cache=$root/.cache/bin
version=$(cat "$source/main.go.txt" "$source/go.mod" | cksum | cut -d ' ' -f 1)
program=$cache/versitygw-$version
mkdir -p "$cache"
exec 9>"$cache/versitygw.lock"
flock 9
if [ ! -x "$program" ]; then
	build=$cache/versitygw.build
	trap 'rm -rf "$build"' EXIT
	rm -rf "$build"
	cp -R "$source" "$build"
	mv "$build/main.go.txt" "$build/main.go"
	# The name comes last, so that a build that is killed leaves no half binary under it.
	# With the flags of the tests it shares packages with them. Without optimizing, the others
	# compile in half of the time.
	CGO_ENABLED=0 go build -C "$build" -buildvcs=false '-gcflags=github.com/...=-dwarf=false -N -l' -ldflags '-s -w' -o versitygw . >&2
	mv "$build/versitygw" "$program"
fi
echo "$program"
