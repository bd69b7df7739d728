#!/bin/sh
# Prints the directory for the files of tests: TMPDIR, or one in memory if there is room.
# Tests write many small files and wait for each, which takes a fifth of their time on a
# disk. It prints nothing where there is no room: the files go to the usual place then.
#
#   internal/tools/memory.sh            makes the directory
#   internal/tools/memory.sh --remove   removes it with what killed tests left
set -eu

if [ -n "${TMPDIR:-}" ] && [ "${1:-}" != --remove ]; then
	echo "$TMPDIR"
	exit
fi
# The same one for each run in a checkout, so that Go finds the results of tests again.
dir=/dev/shm/s$(cd "$(dirname "$0")/../.." && pwd | cksum | cut -c 1-5)
if [ "${1:-}" = --remove ]; then
	rm -rf "$dir"
	exit
fi
room=$(df -Pk /dev/shm 2>/dev/null | awk 'END { print $4 + 0 }')
[ "${room:-0}" -ge 6000000 ] || exit 0
mkdir -p -m 755 "$dir" 2>/dev/null && [ -O "$dir" ] || exit 0
# Some systems run no programs from there.
printf '#!/bin/sh\n' >"$dir/try" && chmod +x "$dir/try"
if "$dir/try" 2>/dev/null; then
	echo "$dir"
fi
rm -f "$dir/try"
