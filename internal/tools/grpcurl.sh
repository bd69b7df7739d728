#!/bin/sh
# Prints the path of grpcurl: a test peer, not part of the product.
exec "$(dirname "$0")/gotool.sh" grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl v1.9.3
