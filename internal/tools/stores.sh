#!/bin/sh
# Makes the stores of a release that every later one must open (releases_test.go).
#
#   internal/tools/stores.sh STET testdata/releases/v0.1.0
#
# STET is the program of that release. Each archive has a store, the workspace of its
# checkpoints, and the key if it is encrypted.
set -eu
stet=$1 out=$2
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=/tmp/stet-release-store # the checkpoints name it
mkdir "$work"
trap 'rm -rf "$work"' EXIT
export HOME="$work/home" XDG_CONFIG_HOME="$work/home" XDG_DATA_HOME="$work/home" STET_COMPACT_BACKGROUND=false
unset STET_STORE STET_CONFIG STET_KEY_FILE STET_PASSPHRASE 2>/dev/null || true
mkdir "$HOME"

keep() { # NAME packs what is there
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2026-01-01 00:00Z' -C "$work" --exclude=./home -cf - . | gzip -9n >"$out/$1.tar.gz"
}

"$stet" --store "$work/store" demo "$work/shop" >/dev/null
keep plain
"$stet" --store "$work/store" archive --idle 0s >/dev/null
"$stet" --store "$work/store" gc >/dev/null
keep archived
rm -rf "$work/store" "$work/shop"
"$stet" --store "$work/store" --key-file "$work/key" keys init >/dev/null
"$stet" --store "$work/store" --key-file "$work/key" demo "$work/shop" >/dev/null
keep encrypted
