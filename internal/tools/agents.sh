#!/bin/sh
# Installs a coding agent below .cache/agents and prints the directory of its programs.
#
#   bin=$(internal/tools/agents.sh claude-code)
#
# The versions are those that the adapters were written for. Nothing is done where a
# version is there already. Needs node and npm.
set -eu

# packages prints what npm installs for an agent, the agent itself first.
packages() {
	case "$1" in
	claude-code) echo @anthropic-ai/claude-code@2.1.325 ;;
	codex) echo @openai/codex@0.166.0 ;;
	gemini) echo @google/gemini-cli@0.61.0 ;;
	# The second is what OpenCode would install at its first start.
	opencode) echo opencode-ai@1.18.33 @opencode-ai/plugin@1.18.33 ;;
	copilot) echo @github/copilot@1.0.102 ;;
	qwen) echo @qwen-code/qwen-code@0.15.10 ;;
	pi) echo @mariozechner/pi-coding-agent@0.73.1 ;;
	esac
}

agent=${1:?usage: agents.sh AGENT}
list=$(packages "$agent")
if [ -z "$list" ]; then
	echo "agents.sh: there is no agent called $agent" >&2
	exit 2
fi
first=${list%% *}
cache=$(cd "$(dirname "$0")/../.." && pwd)/.cache/agents
dir=$cache/$agent-${first##*@}

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
	mkdir -p "$dir"
	echo '{"private": true}' >"$dir/package.json"
	# shellcheck disable=SC2086 # the list is meant to be split
	npm install --prefix "$dir" --save-exact --no-audit --no-fund --loglevel=error $list >&2
	touch "$dir/complete"
fi
echo "$dir/node_modules/.bin"
