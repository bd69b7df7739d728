#!/bin/sh
# Prints the path of versitygw: a bucket as people run them, for tests, not part of the
# product. It is built where it is not there yet.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
source=$root/internal/tools/versitygw
cache=$root/.cache/bin
program=$cache/versitygw-$(cat "$source/main.go" "$source/go.mod" | cksum | cut -d ' ' -f 1)
mkdir -p "$cache"
exec 9>"$cache/versitygw.lock"
flock 9
if [ ! -x "$program" ]; then
	# Under another name first, so that a build that is killed leaves no half binary.
	CGO_ENABLED=0 GOFLAGS= go build -C "$source" -buildvcs=false -ldflags '-s -w' -o "$program.part" . >&2
	mv "$program.part" "$program"
fi
echo "$program"
