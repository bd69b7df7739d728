#!/bin/sh
# Prints the path of rclone, which it builds where it is not there yet: a bucket
# that knows neither conditional writes nor checksums, for tests, not part of the
# product.
set -eu

version=v1.75.1
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache/bin
mkdir -p "$cache"
exec 9>"$cache/rclone.lock"
flock 9
if [ ! -x "$cache/rclone-$version" ]; then
	# Into a directory of its own, so that a build that is killed leaves no half
	# binary under the name, and outside of the module, so that its go.mod has no
	# say.
	trap 'rm -rf "$cache/rclone.build"' EXIT
	(cd / && GOBIN="$cache/rclone.build" CGO_ENABLED=0 GOFLAGS= go install -ldflags '-s -w' "github.com/rclone/rclone@$version") >&2
	mv "$cache/rclone.build/rclone" "$cache/rclone-$version"
fi
echo "$cache/rclone-$version"
