#!/bin/sh
# Prints the path of nfpm, which makes the packages of a release: not part of the product.
exec "$(dirname "$0")/gotool.sh" nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm v2.45.2
