#!/bin/sh
# Installs the npm packages of a directory and compiles its TypeScript.
#
#   internal/tools/tsc.sh clients/typescript
#
# Tests that run side by side use the same output: one compiles, and the others, which
# wait for it, find that nothing has changed.
set -eu

dir=${1:?usage: tsc.sh DIRECTORY}
tools=$(cd "$(dirname "$0")" && pwd)
"$tools/npm.sh" "$dir"
exec 9>"$tools/../../.cache/tsc.lock"
flock 9
cd "$dir"
exec node node_modules/typescript/bin/tsc -p .
