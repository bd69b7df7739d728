#!/bin/sh
# Generates gen/ (Go) and clients/typescript/src/gen/ from proto/.
#
#   internal/tools/generate.sh          write both
#   internal/tools/generate.sh --check  fail if they are not what proto/ gives
#
# Needs protoc (Debian: protobuf-compiler), Go, node and npm (Debian: nodejs,
# npm). The plugins come from the versions in go.mod and package-lock.json, so
# that every machine writes the same bytes. A new .proto file is picked up by
# itself, the code of a removed one goes.
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
ts=clients/typescript
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

generated() { # lists the generated files below $1, relative to it
	(cd "$1" && find . -name '*.pb.go' -o -name '*.connect.go' -o -name '*_pb.ts' | LC_ALL=C sort)
}

# Go's build cache makes the second build of a plugin nearly free, so nothing
# is kept between runs that could go stale.
mkdir -p "$work/bin" "$work/go" "$work/ts" gen "$ts/src/gen"
go build -o "$work/bin/" \
	google.golang.org/protobuf/cmd/protoc-gen-go \
	connectrpc.com/connect/cmd/protoc-gen-connect-go \
	./internal/tools/oneunary
internal/tools/npm.sh "$ts"

find proto -name '*.proto' | LC_ALL=C sort >"$work/files"
protoc --proto_path=proto \
	--plugin=protoc-gen-go="$work/bin/protoc-gen-go" \
	--plugin=protoc-gen-connect-go="$work/bin/protoc-gen-connect-go" \
	--plugin=protoc-gen-es="$ts/node_modules/.bin/protoc-gen-es" \
	--go_out="$work/go" --go_opt=paths=source_relative \
	--connect-go_out="$work/go" --connect-go_opt=paths=source_relative,simple \
	--es_out="$work/ts" --es_opt=target=ts,import_extension=js \
	"@$work/files"

# The header names protoc's version, which differs between machines while the
# code does not.
generated "$work/go" >"$work/new"
(cd "$work/go" && xargs sed -i '/^\/\/ [-\t ]*protoc  *v[0-9]/d' <"$work/new")

# Connect's generic code would be compiled anew for every pair of messages, which
# made the program 3 MB larger: one instance of it serves all unary methods.
find "$work/go" -name '*.connect.go' | xargs "$work/bin/oneunary"

check() { # fails if the files below $2 are not those below $1
	generated "$1" >"$work/new"
	generated "$2" >"$work/old"
	stale=false
	diff -u "$work/old" "$work/new" >&2 || stale=true
	while read -r file; do
		[ ! -e "$2/$file" ] || diff -u "$2/$file" "$1/$file" >&2 || stale=true
	done <"$work/new"
	if $stale; then
		echo "$2 does not match proto/: run internal/tools/generate.sh and commit the result" >&2
		return 1
	fi
}

# Unchanged files keep their time stamps; changed ones appear whole.
install() { # makes the files below $2 those below $1
	generated "$1" >"$work/new"
	generated "$2" >"$work/old"
	while read -r file; do
		cmp -s "$1/$file" "$2/$file" && continue
		mkdir -p "$2/${file%/*}"
		cp "$1/$file" "$2/$file.tmp"
		mv -f "$2/$file.tmp" "$2/$file"
	done <"$work/new"
	LC_ALL=C comm -13 "$work/new" "$work/old" | while read -r file; do
		rm -f "$2/$file"
	done
}

if [ "${1:-}" = --check ]; then
	check "$work/go" gen
	check "$work/ts" "$ts/src/gen"
else
	install "$work/go" gen
	install "$work/ts" "$ts/src/gen"
fi
