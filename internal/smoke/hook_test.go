package smoke

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The events of an agent, as it sends them, become checkpoints and a conversation, from
// either program.
func TestProgramRecordsHooks(t *testing.T) {
	for _, name := range []string{"stet", "stet-hook"} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			built := os.Getenv("STET_PROGRAM")
			program := filepath.Join(filepath.Dir(built), name+filepath.Ext(built))
			const session = "11111111-1111-4111-8111-111111111111"
			transcript := filepath.Join(m.dir, session+".jsonl")
			event := func(name string, more map[string]any) {
				t.Helper()
				payload := map[string]any{
					"session_id": session, "transcript_path": seen(transcript), "cwd": seen(m.work), "prompt_id": "p1", "hook_event_name": name,
				}
				for key, value := range more {
					payload[key] = value
				}
				data, err := json.Marshal(payload)
				if err != nil {
					t.Fatal(err)
				}
				cmd := m.commandOf(program, "hook", "claude-code", name)
				cmd.Stdin = strings.NewReader(string(data))
				if out := m.output(cmd); out != "" {
					t.Errorf("%s: the hook printed %q", name, out)
				}
			}
			m.write("main.go", "package main\n")
			event("UserPromptSubmit", map[string]any{"prompt": "make a file"})
			event("PreToolUse", map[string]any{"tool_name": "Write", "tool_use_id": "t1"})
			noted, err := os.ReadFile(filepath.Join(m.store+".hooks", "claude-code", session, "00000001.jsonl"))
			if err != nil || !strings.Contains(string(noted), `"bare":true`) {
				t.Errorf("the event inside the turn was not noted the short way: %v\n%s", err, noted)
			}
			m.write("a.txt", "one")
			event("PostToolUse", map[string]any{
				"tool_name": "Write", "tool_use_id": "t1", "tool_response": map[string]any{"type": "create"},
				"tool_input": map[string]any{"file_path": seen(filepath.Join(m.work, "a.txt")), "content": "one"},
			})
			lines := `{"type":"user","uuid":"u1","parentUuid":null,"promptId":"p1","message":{"role":"user","content":"make a file"},"sessionId":"` + session + `","timestamp":"2026-11-16T11:56:16.000Z"}
{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"text","text":"I made the file."}],"usage":{"input_tokens":10,"output_tokens":5}},"sessionId":"` + session + `","timestamp":"2026-11-16T11:56:18.000Z"}
`
			if err := os.WriteFile(transcript, []byte(lines), 0o600); err != nil {
				t.Fatal(err)
			}
			event("Stop", map[string]any{"stop_hook_active": false, "background_tasks": []any{}})
			if log := m.stet("log"); !strings.Contains(log, "turn 1") || !strings.Contains(log, "make a file") {
				t.Errorf("the log lacks the turn:\n%s\n%s", log, m.stet("status"))
			}
			if said := m.stet("export", session[:8]); !strings.Contains(said, "I made the file.") {
				t.Errorf("the conversation is\n%s", said)
			}
			if status := m.stet("status"); strings.Contains(status, "failure") {
				t.Errorf("hooks failed:\n%s", status)
			}
			m.stet("rewind", "c1", "--exact", "-y")
			m.want("before the turn", map[string]string{"main.go": "package main\n"})
		})
	}
}
