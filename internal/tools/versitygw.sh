#!/bin/sh
# Prints the path of versitygw: a bucket as people run them, for tests, not part of the
# product.
exec "$(dirname "$0")/gotool.sh" versitygw github.com/versity/versitygw/cmd/versitygw v1.8.0
