#!/bin/sh
# Installs a coding agent below .cache/agents and prints the directory of its programs.
#
#   bin=$(internal/tools/agents.sh claude-code)
#
# The versions are those that the adapters were written for. Nothing is done where a
# version is there already. Needs node and npm.
set -eu

# package prints what npm installs for an agent.
package() {
	case "$1" in
	claude-code) echo @anthropic-ai/claude-code@2.1.325 ;;
	codex) echo @openai/codex@0.166.0 ;;
	gemini) echo @google/gemini-cli@0.61.0 ;;
	opencode) echo opencode-ai@1.18.33 ;;
	copilot) echo @github/copilot@1.0.102 ;;
	qwen) echo @qwen-code/qwen-code@0.15.10 ;;
	pi) echo @mariozechner/pi-coding-agent@0.73.1 ;;
	esac
}

agent=${1:?usage: agents.sh AGENT}
package=$(package "$agent")
if [ -z "$package" ]; then
	echo "agents.sh: there is no agent called $agent" >&2
	exit 2
fi
version=${package##*@}
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache/agents
dir=$cache/$agent-$version

install() { # DIRECTORY PACKAGE
	mkdir -p "$1"
	echo '{"private": true}' >"$1/package.json"
	npm install --prefix "$1" --save-exact --no-audit --no-fund --loglevel=error "$2" >&2
}

# The lock is for tests that run side by side; the stamp is written last.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -e "$dir/complete" ]; then
	for command in node npm; do
		if ! command -v "$command" >/dev/null; then
			echo "$command is missing: install nodejs and npm" >&2
			exit 1
		fi
	done
	rm -rf "$dir"
	install "$dir" "$package"
	# OpenCode would install this in the home of its user when it starts.
	[ "$agent" != opencode ] || install "$dir/plugin" "@opencode-ai/plugin@$version"
	touch "$dir/complete"
fi
echo "$dir/node_modules/.bin"
