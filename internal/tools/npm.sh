#!/bin/sh
# Installs the npm packages of a directory, exactly as its lock file names them.
#
#   internal/tools/npm.sh clients/typescript
#
# Nothing is done where the packages of this lock file are there already. Needs
# node and npm (Debian: nodejs, npm).
set -eu

dir=${1:?usage: npm.sh DIRECTORY}
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache
for command in node npm; do
	if ! command -v "$command" >/dev/null; then
		echo "$command is missing: install nodejs and npm" >&2
		exit 1
	fi
done

# The stamp is written last, so that an installation that was cut is repeated.
# The lock is for tests and checks that run side by side.
mkdir -p "$cache"
exec 9>"$cache/npm.lock"
flock 9
cd "$dir"
if cmp -s package-lock.json node_modules/.stet-lock; then
	exit 0
fi
npm ci --no-audit --no-fund --loglevel=error >&2
cp package-lock.json node_modules/.stet-lock
