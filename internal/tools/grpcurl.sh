#!/bin/sh
# Prints the path of grpcurl, which it builds where it is not there yet: a test
# peer, not part of the product.
set -eu

version=v1.9.3
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache/bin
mkdir -p "$cache"
exec 9>"$cache/grpcurl.lock"
flock 9
if [ ! -x "$cache/grpcurl-$version" ]; then
	# Outside of the module, so that its go.mod has no say.
	(cd / && GOBIN="$cache" CGO_ENABLED=0 go install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$version") >&2
	mv "$cache/grpcurl" "$cache/grpcurl-$version"
fi
echo "$cache/grpcurl-$version"
