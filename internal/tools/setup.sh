#!/bin/sh
# Brings the parts that a target uses besides Go and that are not there yet.
#
#   internal/tools/setup.sh PART…             brings them
#   internal/tools/setup.sh --has PART…       fails if one of them could not be brought
#   internal/tools/setup.sh --left-out PART…  says in one line which were not, and why
#
# A part that cannot be brought is recorded under .cache/left-out. Tests that use it
# are skipped then (internal/testenv). With CI=true it is an error instead.
set -eu
cd "$(dirname "$0")/../.."
tools=internal/tools
record=.cache/left-out

# packages prints the Debian packages of a part; there are none for a part that a
# script brings.
packages() {
	case "$1" in
	git) echo git ;;
	curl) echo curl ;;
	node) echo nodejs npm ;;
	python) echo python3 ;;
	rpm) echo rpm ;;
	browser) if has_package chromium-headless-shell; then echo chromium-headless-shell; else echo chromium; fi ;;
	postgres) echo postgresql ;;
	compiler) echo gcc libc6-dev ;;
	# The compiler alone lacks the types that every .proto file may import.
	protoc) echo protobuf-compiler libprotobuf-dev ;;
	esac
}

# present tells whether a part is there, by what tests and targets use of it.
present() {
	case "$1" in
	git | curl | rpm) found "$1" ;;
	node) found node && found npm ;;
	python) found python3 ;;
	browser) found chromium-headless-shell || found chromium || found chromium-browser || found google-chrome ;;
	postgres) ls /usr/lib/postgresql/1[5-9]/bin/initdb >/dev/null 2>&1 || found initdb ;;
	compiler) found gcc && [ -e /usr/include/stdlib.h ] ;;
	protoc) found protoc && [ -e /usr/include/google/protobuf/struct.proto ] ;;
	esac
}

# has_package tells whether the lists of this system have a package. The browser without
# windows is half as large, but not every Debian has it.
has_package() { found apt-cache && apt-cache show "$1" >/dev/null 2>&1; }

found() { command -v "$1" >/dev/null 2>&1; }

# script runs what brings a part that Debian does not have.
script() {
	case "$1" in
	versitygw | grpcurl | rclone | postgres18 | nfpm) "$tools/$1.sh" ;;
	page) "$tools/npm.sh" web/app ;;
	typescript) "$tools/npm.sh" clients/typescript ;;
	suites)
		for dir in internal/suites/durablestreams clients/typescript clients/langgraph; do
			"$tools/npm.sh" "$dir" || return
		done
		;;
	# What make test does not use.
	frameworks) "$tools/npm.sh" clients/cursor-sdk && "$tools/npm.sh" clients/openai-agents && "$tools/npm.sh" examples/vercel-ai ;;
	# What only make bench uses.
	rivals) "$tools/npm.sh" internal/suites/rivals ;;
	claude-code | codex | gemini | opencode | copilot | qwen | pi) "$tools/agents.sh" "$1" ;;
	esac
}

leave_out() { # PART REASON
	mkdir -p "$record"
	echo "$2" >"$record/$1"
	echo "setup: $1 is left out: $2" >&2
}

# install brings the Debian packages of parts, all with one call.
install() {
	missing=""
	for part in "$@"; do
		rm -f "$record/$part"
		present "$part" || missing="$missing $part"
	done
	[ -n "$missing" ] || return 0
	why=""
	as=""
	if [ "$(id -u)" != 0 ]; then
		as=sudo
	fi
	if ! found apt-get; then
		why="this system has no apt-get"
	elif [ -n "$as" ] && ! found sudo; then
		why="installing packages needs root or sudo"
	else
		export DEBIAN_FRONTEND=noninteractive
		if $as apt-get update -qq >/dev/null; then
			names=""
			for part in $missing; do
				names="$names $(packages "$part")"
			done
			echo "installing:$names" >&2
			# A machine that crashes now starts setup again, so dpkg need not wait for the disk.
			# shellcheck disable=SC2086 # the list is meant to be split
			$as apt-get install -y -qq -o Dpkg::Options::=--force-unsafe-io --no-install-recommends $names >/dev/null || why="apt-get could not install it"
		else
			why="apt-get could not install it"
		fi
	fi
	for part in $missing; do
		present "$part" || leave_out "$part" "${why:-the packages do not bring it}; install $(packages "$part")"
	done
}

# bring runs the scripts of parts.
bring() {
	for part in "$@"; do
		rm -f "$record/$part"
		script "$part" >/dev/null || leave_out "$part" "it could not be downloaded or built"
	done
}

# bring_modules does that for parts that come from npm.
bring_modules() {
	if [ ! -e "$record/node" ]; then
		bring "$@"
		return
	fi
	for part in "$@"; do
		leave_out "$part" "it needs node"
	done
}

left_out() { # PART… prints those that were not brought as PART (REASON), …
	comma=""
	for part in "$@"; do
		[ -e "$record/$part" ] || continue
		printf '%s%s (%s)' "$comma" "$part" "$(cat "$record/$part")"
		comma=", "
	done
}

case "${1:-}" in
--has)
	shift
	for part in "$@"; do
		[ ! -e "$record/$part" ] || exit 1
	done
	exit 0
	;;
--left-out)
	shift
	list=$(left_out "$@")
	[ -z "$list" ] || echo "left out, with every test that uses it: $list"
	exit 0
	;;
esac

debian="" built="" modules=""
for part in "$@"; do
	if [ -n "$(packages "$part")" ]; then
		debian="$debian $part"
	else
		case "$part" in
		versitygw | grpcurl | rclone | nfpm) built="$built $part" ;;
		postgres18 | page | typescript | suites | rivals | frameworks) modules="$modules $part" ;;
		claude-code | codex | gemini | opencode | copilot | qwen | pi) modules="$modules $part" ;;
		*)
			echo "setup: there is no part called $part" >&2
			exit 2
			;;
		esac
	fi
done
# Programs are compiled while packages are unpacked; npm's modules need node.
# shellcheck disable=SC2086 # the lists are meant to be split
{
	install $debian &
	bring $built
	wait $!
	bring_modules $modules
}
list=$(left_out "$@")
if [ -n "$list" ] && [ "${CI:-}" = true ]; then
	echo "setup: missing: $list" >&2
	exit 1
fi
