#!/bin/sh
# Prints the path of a program for tests, which it builds where it is not there yet.
#
#   internal/tools/gotool.sh name package version
set -eu

name=$1 package=$2 version=$3
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache/bin
mkdir -p "$cache"
exec 9>"$cache/$name.lock"
flock 9
if [ ! -x "$cache/$name-$version" ]; then
	# Into a directory of its own, so that a build that is killed leaves no half
	# binary under the name, and outside of the module, so that its go.mod has no
	# say.
	trap 'rm -rf "$cache/$name.build"' EXIT
	(cd / && GOBIN="$cache/$name.build" CGO_ENABLED=0 GOFLAGS= go install -ldflags '-s -w' "$package@$version") >&2
	mv "$cache/$name.build/$name" "$cache/$name-$version"
fi
echo "$cache/$name-$version"
