#!/bin/sh
# Prints the path of versitygw, which it builds where it is not there yet: a bucket as
# people run them, for tests, not part of the product.
set -eu

version=v1.8.0
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache/bin
mkdir -p "$cache"
exec 9>"$cache/versitygw.lock"
flock 9
if [ ! -x "$cache/versitygw-$version" ]; then
	# Into a directory of its own, so that a build that is killed leaves no half
	# binary under the name, and outside of the module, so that its go.mod has no
	# say.
	trap 'rm -rf "$cache/versitygw.build"' EXIT
	(cd / && GOBIN="$cache/versitygw.build" CGO_ENABLED=0 GOFLAGS= go install -ldflags '-s -w' "github.com/versity/versitygw/cmd/versitygw@$version") >&2
	mv "$cache/versitygw.build/versitygw" "$cache/versitygw-$version"
fi
echo "$cache/versitygw-$version"
