#!/bin/sh
# Generates gen/ from proto/.
#
#   internal/tools/generate.sh          write gen/
#   internal/tools/generate.sh --check  fail if gen/ is not what proto/ gives
#
# Needs protoc (Debian: protobuf-compiler) and Go. The plugins are built from
# the module versions in go.mod, so that every machine writes the same bytes.
# A new .proto file is picked up by itself, the code of a removed one goes.
set -eu

case "${1:-}" in
"" | --check) ;;
*)
	echo "usage: $0 [--check]" >&2
	exit 2
	;;
esac
if ! command -v protoc >/dev/null; then
	echo "protoc is missing: install protobuf-compiler" >&2
	exit 1
fi

root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

generated() { # lists the generated files below $1, relative to it
	(cd "$1" && find . -name '*.pb.go' -o -name '*.connect.go' | LC_ALL=C sort)
}

# Go's build cache makes the second build of a plugin nearly free, so nothing
# is kept between runs that could go stale.
mkdir -p "$work/bin" "$work/gen" gen
go build -o "$work/bin/" \
	google.golang.org/protobuf/cmd/protoc-gen-go \
	connectrpc.com/connect/cmd/protoc-gen-connect-go

find proto -name '*.proto' | LC_ALL=C sort >"$work/files"
protoc --proto_path=proto \
	--plugin=protoc-gen-go="$work/bin/protoc-gen-go" \
	--plugin=protoc-gen-connect-go="$work/bin/protoc-gen-connect-go" \
	--go_out="$work/gen" --go_opt=paths=source_relative \
	--connect-go_out="$work/gen" --connect-go_opt=paths=source_relative \
	"@$work/files"

# The header names protoc's version, which differs between machines while the
# code does not.
generated "$work/gen" >"$work/new"
(cd "$work/gen" && xargs sed -i '/^\/\/ [-\t ]*protoc  *v[0-9]/d' <"$work/new")
generated gen >"$work/old"

if [ "${1:-}" = --check ]; then
	stale=false
	diff -u "$work/old" "$work/new" >&2 || stale=true
	while read -r file; do
		[ ! -e "gen/$file" ] || diff -u "gen/$file" "$work/gen/$file" >&2 || stale=true
	done <"$work/new"
	if $stale; then
		echo "gen/ does not match proto/: run internal/tools/generate.sh and commit the result" >&2
		exit 1
	fi
	exit 0
fi

# Unchanged files keep their time stamps; changed ones appear whole.
while read -r file; do
	cmp -s "$work/gen/$file" "gen/$file" && continue
	mkdir -p "gen/${file%/*}"
	cp "$work/gen/$file" "gen/$file.tmp"
	mv -f "gen/$file.tmp" "gen/$file"
done <"$work/new"
LC_ALL=C comm -13 "$work/new" "$work/old" | while read -r file; do
	rm -f "gen/$file"
done
