#!/bin/sh
# Installs stet for this user, after it has verified the checksum of the archive.
#
#   curl -fsSL https://github.com/stet-dev/stet/releases/download/@VERSION@/install.sh | sh
#
# STET_PREFIX   where to install; programs go to its bin (default: ~/.local)
# STET_URL      where the files of the release are (default: the release on GitHub); a
#               directory works, too
# STET_KEY      public minisign key; the signature of the checksums is verified with it
set -eu

version=@VERSION@
prefix=${STET_PREFIX:-${HOME:?}/.local}
url=${STET_URL:-https://github.com/stet-dev/stet/releases/download/$version}

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# get NAME fetches a file of the release.
get() {
	if [ -d "$url" ]; then
		cp "$url/$1" "$work/$1" || fail "$url has no $1"
	elif has curl; then
		curl -fsSL -o "$work/$1" "$url/$1" || fail "$url/$1 cannot be downloaded"
	elif has wget; then
		wget -q -O "$work/$1" "$url/$1" || fail "$url/$1 cannot be downloaded"
	else
		fail "neither curl nor wget is here"
	fi
}

sum() {
	if has sha256sum; then
		sha256sum "$1"
	elif has shasum; then
		shasum -a 256 "$1"
	elif has openssl; then
		openssl dgst -r -sha256 "$1"
	else
		fail "no program here computes SHA-256: sha256sum, shasum or openssl"
	fi
}

main() {
	case "$(uname -s)" in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	FreeBSD) system=freebsd ;;
	*) fail "there is no archive for $(uname -s) that this script can install" ;;
	esac
	case "$(uname -m)" in
	x86_64 | amd64) processor=amd64 ;;
	aarch64 | arm64) processor=arm64 ;;
	*) fail "there is no archive for $(uname -m)" ;;
	esac
	name=stet_${version#v}_${system}_$processor.tar.gz
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT

	get SHA256SUMS
	if [ -n "${STET_KEY:-}" ]; then
		has minisign || fail "STET_KEY needs the program minisign"
		get SHA256SUMS.minisig
		minisign -V -q -P "$STET_KEY" -m "$work/SHA256SUMS" || fail "the signature of SHA256SUMS is wrong"
	fi
	want=$(awk -v name="$name" '$2 == name { print $1 }' "$work/SHA256SUMS")
	[ -n "$want" ] || fail "release $version has no $name"
	get "$name"
	have=$(sum "$work/$name" | awk '{ print $1 }')
	[ "$have" = "$want" ] || fail "$name has the checksum $have, but SHA256SUMS says $want; nothing was installed"

	tar -xzf "$work/$name" -C "$work"
	from=$work/stet_${version#v}
	mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
		"$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
	cp "$from"/man/*.1 "$prefix/share/man/man1/"
	cp "$from/completions/stet.bash" "$prefix/share/bash-completion/completions/stet"
	cp "$from/completions/_stet" "$prefix/share/zsh/site-functions/_stet"
	cp "$from/completions/stet.fish" "$prefix/share/fish/vendor_completions.d/stet.fish"
	# A program that runs can be replaced, but not written to. stet comes last: it uses the other.
	for program in stet-hook stet; do
		cp "$from/$program" "$prefix/bin/.$program.new"
		chmod 755 "$prefix/bin/.$program.new"
		mv -f "$prefix/bin/.$program.new" "$prefix/bin/$program"
	done
	echo "installed $("$prefix/bin/stet" version) in $prefix/bin"
	case ":${PATH:-}:" in
	*":$prefix/bin:"*) ;;
	*) echo "$prefix/bin is not in PATH; add it, for example in ~/.profile" ;;
	esac
}

main
