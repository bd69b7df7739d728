#!/bin/sh
# Prints the path of rclone: a bucket that knows neither conditional writes nor
# checksums, for tests, not part of the product.
exec "$(dirname "$0")/gotool.sh" rclone github.com/rclone/rclone v1.75.1
