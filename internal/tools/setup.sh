#!/bin/sh
# Installs the Debian packages that a target needs and that are not there yet.
#
#   internal/tools/setup.sh command=package …
#
# Each argument names a command (or an absolute path) and the package that
# brings it. Nothing is done where all commands exist.
set -eu

missing=""
for pair in "$@"; do
	command=${pair%%=*}
	package=${pair#*=}
	case "$command" in
	/*) [ -e "$command" ] || missing="$missing $package" ;;
	*) command -v "$command" >/dev/null 2>&1 || missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

echo "installing:$missing" >&2
if ! command -v apt-get >/dev/null 2>&1; then
	echo "this system has no apt-get; install by hand:$missing" >&2
	exit 1
fi
run=""
if [ "$(id -u)" != 0 ]; then
	run=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$run apt-get update -qq
# shellcheck disable=SC2086 # the list is meant to be split
$run apt-get install -y -qq --no-install-recommends $missing >/dev/null
