package realagents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// Agent is a program and how it is driven.
type Agent struct {
	// Name is how stet names it.
	Name    string
	program string
	// Subagents means that it has a tool that starts them.
	Subagents bool
	// Again are the arguments that continue the last session.
	Again []string
	// Resume returns the arguments that continue a session. It is nil for an agent whose
	// hooks cannot show the model a line of text.
	Resume func(session string) []string

	// files are what the user has below the home before stet is connected, among them
	// hooks of others.
	files func(b *Box) map[string]string
	// env is what the agent needs to find the model, and to ask nobody else.
	env func(b *Box) []string
	// args runs one prompt without a screen. resume is how a session is continued, as
	// Again or as stet prints it; nil begins one.
	args func(resume []string, prompt string) []string
	// Defers means that it shows the model only the names of the tools of servers, until the
	// model searches for one.
	Defers bool
	// NoServers means that it starts no servers of the Model Context Protocol.
	NoServers bool
	// Rewrites means that the agent writes its settings itself when it starts.
	Rewrites bool
}

// All returns the agents.
func All() []Agent {
	return []Agent{claudeCode(), codex(), gemini(), opencode(), copilot(), qwen(), pi()}
}

// bin returns the directory of the agent's programs. The test is skipped if setup could
// not install them.
func (a Agent) bin(tb testing.TB) string {
	tb.Helper()
	testenv.Need(tb, a.Name)
	cmd := exec.CommandContext(tb.Context(), filepath.Join(testenv.Root(), "internal", "tools", "agents.sh"), a.Name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("agents.sh %s: %v", a.Name, err)
	}
	return strings.TrimSpace(string(out))
}

// other is the command of a hook that another tool has configured.
func (b *Box) other() string { return "echo ran >> " + b.Others }

func claudeCode() Agent {
	return Agent{
		Name: "claude-code", program: "claude", Subagents: true, Again: []string{"--continue"},
		Resume: func(session string) []string { return []string{"--resume", session} },
		files: func(b *Box) map[string]string {
			return map[string]string{".claude/settings.json": fmt.Sprintf(`{
    "cleanupPeriodDays": 365,
    "hooks": {
        "PostToolUse": [
            { "matcher": "Write", "hooks": [ { "type": "command", "command": %q } ] }
        ]
    }
}
`, b.other())}
		},
		env: func(b *Box) []string {
			return []string{
				"ANTHROPIC_API_KEY=x", "ANTHROPIC_BASE_URL=" + b.URL, "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
				"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_BUG_COMMAND=1",
				"ENABLE_TOOL_SEARCH=false", // show the model the tools of servers at once
			}
		},
		args: func(resume []string, prompt string) []string {
			args := []string{
				"-p", "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits",
				"--allowedTools", "Bash Edit Write Read Agent Task mcp__stet__history", "--output-format", "json",
			}
			return append(append(args, resume...), prompt)
		},
	}
}

// CodexAsking returns Codex as a user starts it, so that it skips hooks that were not
// approved.
func CodexAsking() Agent {
	a := codex()
	trusting := a.args
	a.args = func(resume []string, prompt string) []string {
		return slices.DeleteFunc(trusting(resume, prompt), func(arg string) bool { return arg == bypass })
	}
	return a
}

// bypass makes Codex run hooks that nobody approved.
const bypass = "--dangerously-bypass-hook-trust"

func codex() Agent {
	return Agent{
		Name: "codex", program: "codex", Subagents: true, Again: []string{"resume", "--last"},
		Resume: func(session string) []string { return []string{"resume", session} },
		files: func(b *Box) map[string]string {
			return map[string]string{
				".codex/config.toml": codexConfig(b),
				".codex/hooks.json":  fmt.Sprintf(`{"hooks":{"PostToolUse":[{"matcher":"*","hooks":[{"type":"command","command":%q,"timeout":10}]}]}}`, b.other()),
			}
		},
		env: func(*Box) []string { return []string{"MODEL_KEY=x", "RUST_LOG=error"} },
		args: func(resume []string, prompt string) []string {
			// Nobody is there who could approve the hooks.
			args := []string{"exec", bypass}
			// The other model has edit tools, this one subagents, and the tools of servers at once.
			if strings.Contains(prompt, "::task") || strings.Contains(prompt, "::history") {
				args = append(args, "-m", "gpt-5.1-codex")
			}
			return append(append(args, resume...), "--json", prompt)
		},
	}
}

func codexConfig(b *Box) string {
	return fmt.Sprintf(`model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
request_max_retries = 0
stream_max_retries = 0
[features]
plugins = false
apps = false
remote_plugin = false
plugin_discovery_prefetch = false
skill_search = false
[analytics]
enabled = false
[otel]
exporter = "none"
[projects.%q]
trust_level = "trusted"
`, b.URL, b.Workspace)
}

func gemini() Agent {
	return Agent{
		Name: "gemini", program: "gemini", Subagents: true, Again: []string{"--resume", "latest"},
		Resume: func(session string) []string { return []string{"--resume", session} },
		files: func(b *Box) map[string]string {
			return map[string]string{".gemini/settings.json": fmt.Sprintf(`{
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "hooks": {"AfterTool": [{"matcher": ".*", "hooks": [{"type": "command", "name": "other", "command": %q}]}]}
}
`, b.other())}
		},
		env: func(b *Box) []string {
			return []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=" + b.URL, "GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
		args: func(resume []string, prompt string) []string {
			args := append([]string{"-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-o", "json"}, resume...)
			return append(args, "-p", prompt)
		},
	}
}

func opencode() Agent {
	return Agent{
		Name: "opencode", program: "opencode", Subagents: true, Again: []string{"--continue"},
		files: func(b *Box) map[string]string {
			return map[string]string{
				// OpenCode adds the schema itself if it is missing.
				".config/opencode/opencode.json": fmt.Sprintf(`{
  "$schema": "https://opencode.ai/config.json",
  "autoupdate": false, "share": "disabled", "model": "scripted/m", "small_model": "scripted/m",
  "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny"}, "enabled_providers": ["scripted"],
  "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": {"baseURL": "%s/v1", "apiKey": "x"},
    "models": {"m": {"name": "m", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}}}
}
`, b.URL),
				".config/opencode/plugin/other.js": fmt.Sprintf(`import { appendFileSync } from "node:fs"
export const Other = async () => ({ "tool.execute.after": async () => appendFileSync(%q, "ran\n") })
`, b.Others),
			}
		},
		env: func(*Box) []string {
			return []string{
				"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
				"OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_SHARE=1",
			}
		},
		args: func(resume []string, prompt string) []string {
			return append(append([]string{"run", "--format", "json"}, resume...), prompt)
		},
	}
}

func copilot() Agent {
	return Agent{
		Name: "copilot", program: "copilot", Subagents: true, Again: []string{"--continue"},
		files: func(b *Box) map[string]string {
			return map[string]string{".copilot/hooks/other.json": fmt.Sprintf(
				`{"version":1,"hooks":{"postToolUse":[{"type":"command","bash":%q,"timeoutSec":10}]}}`+"\n", b.other())}
		},
		env: func(b *Box) []string {
			return []string{
				"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_PROVIDER_BASE_URL=" + b.URL + "/v1",
				"COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_API_KEY=x", "COPILOT_MODEL=gpt-5.1",
			}
		},
		args: func(resume []string, prompt string) []string {
			args := append([]string{"--allow-all-tools", "--allow-all-paths", "--output-format", "json"}, resume...)
			return append(args, "-p", prompt)
		},
	}
}

func qwen() Agent {
	return Agent{
		Name: "qwen", program: "qwen", Subagents: true, Again: []string{"--continue"}, Rewrites: true, Defers: true,
		Resume: func(session string) []string { return []string{"--resume", session} },
		files: func(b *Box) map[string]string {
			return map[string]string{".qwen/settings.json": fmt.Sprintf(`{
  "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
  "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
  "model": {"name": "m"},
  "hooks": {"PostToolUse": [{"matcher": "*", "hooks": [{"type": "command", "name": "other", "command": %q}]}]}
}
`, b.other())}
		},
		env: func(b *Box) []string {
			return []string{"OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + b.URL + "/v1", "OPENAI_MODEL=m"}
		},
		args: func(resume []string, prompt string) []string {
			args := append([]string{"--auth-type", "openai", "-m", "m", "--yolo", "-o", "json"}, resume...)
			return append(args, prompt)
		},
	}
}

func pi() Agent {
	return Agent{
		Name: "pi", program: "pi", Again: []string{"--continue"}, NoServers: true,
		files: func(b *Box) map[string]string {
			return map[string]string{
				".pi/agent/models.json": fmt.Sprintf(
					`{"providers":{"scripted":{"baseUrl":"%s/v1","api":"openai-completions","apiKey":"x","models":[{"id":"m"}]}}}`+"\n", b.URL),
				".pi/agent/extensions/other.ts": fmt.Sprintf(`import { appendFileSync } from "node:fs"
export default (pi) => pi.on("tool_result", async () => appendFileSync(%q, "ran\n"))
`, b.Others),
			}
		},
		env: func(*Box) []string { return []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"} },
		args: func(resume []string, prompt string) []string {
			args := append([]string{"--offline", "--provider", "scripted", "--model", "m"}, resume...)
			return append(args, "-p", prompt)
		},
	}
}

// Files returns the paths below the home of what the user had before stet was connected.
func (b *Box) Files() []string {
	var out []string
	for name := range b.agent.files(b) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
