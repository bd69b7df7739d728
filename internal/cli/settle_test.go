package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

const stopped = "11111111-1111-4111-8111-111111111111" // the session of stoppedTurn

// stoppedTurn is a household in which a session of Claude Code was interrupted after it had
// written agent.txt, which only its transcript says, and the user then wrote mine.txt. The
// agent's process, which is this one, goes on.
func stoppedTurn(t *testing.T) *household {
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	h := newHousehold(t, "CLAUDE_PROJECT_DIR=", "GEMINI_CWD=", "CLAUDE_CODE_SESSION_ID=22222222-2222-4222-8222-222222222222")
	home := filepath.Join(filepath.Dir(h.dir), "home")
	transcript := filepath.Join(home, ".claude", "projects", "-work", stopped+".jsonl")
	if err := os.MkdirAll(filepath.Dir(transcript), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home) // for a server in this process
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(filepath.Dir(h.dir), "config"))
	fill := strings.NewReplacer("@ID@", stopped, "@FILE@", transcript, "@DIR@", h.dir).Replace
	h.write("lib.txt", "lib\n")
	h.hook("UserPromptSubmit", fill(`{"session_id":"@ID@","transcript_path":"@FILE@","cwd":"@DIR@","prompt_id":"p1","hook_event_name":"UserPromptSubmit","prompt":"make a file"}`))
	h.write("agent.txt", "agent\n")
	h.hook("PostToolUse", fill(`{"session_id":"@ID@","transcript_path":"@FILE@","cwd":"@DIR@","prompt_id":"p1","hook_event_name":"PostToolUse","tool_name":"Write","tool_input":{"file_path":"@DIR@/agent.txt","content":"agent\n"},"tool_use_id":"t1","tool_response":{}}`))
	lines := fill(`{"type":"user","uuid":"u1","parentUuid":null,"promptId":"p1","message":{"role":"user","content":"make a file"},"cwd":"@DIR@","sessionId":"@ID@","timestamp":"2026-11-16T11:56:16.000Z"}
{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"@DIR@/agent.txt","content":"agent\n"}}],"usage":{"input_tokens":10,"output_tokens":5}},"sessionId":"@ID@","timestamp":"2026-11-16T11:56:18.000Z"}
{"type":"user","uuid":"u2","parentUuid":"a1","promptId":"p1","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},"cwd":"@DIR@","sessionId":"@ID@","timestamp":"2026-11-16T11:56:19.000Z"}
`)
	if err := os.WriteFile(transcript, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("mine.txt", "mine\n")
	return h
}

// hook is what Claude Code runs for an event.
func (h *household) hook(event, payload string) {
	h.t.Helper()
	program, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := &exec.Cmd{
		Path: program, Args: []string{"stet", "--store", h.store, "hook", "claude-code", event}, Dir: h.dir, Env: h.env,
		Stdin: strings.NewReader(payload),
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", event, err, out)
	}
}

// checkStopped checks that only the turn's work was taken back, and that all went well.
func (h *household) checkStopped() {
	h.t.Helper()
	h.want("agent.txt", "(none)")
	h.want("mine.txt", "mine\n")
	if said := h.stet(0, "status"); strings.Contains(said, "failure") {
		h.t.Errorf("status says:\n%s", said)
	}
}

// The server asks the transcript before it plans, so that a rewind of the page neither takes
// back what the user did after an interrupt nor meets an agent at work.
func TestServerSettlesInterruptedTurns(t *testing.T) {
	h := stoppedTurn(t)
	address, _ := serveHere(t, h.store)
	token, err := server.TokenFile(filepath.Join(h.store, server.TokenName))
	if err != nil {
		t.Fatal(err)
	}
	checkpoints := stetv1connect.NewCheckpointServiceClient(testClient(t, address, token).HTTP())
	m := &stetv1.PlanRewindRequest{Workspace: h.dir, Conversation: stopped, Ref: "before:turn:1", Files: true}
	plan, err := checkpoints.PlanRewind(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.GetAtWork()) > 0 {
		t.Errorf("at work: %v", plan.GetAtWork())
	}
	if _, err = checkpoints.Rewind(t.Context(), &stetv1.RewindRequest{Plan: m, PlanToken: plan.GetPlanToken()}); err != nil {
		t.Fatal(err)
	}
	h.checkStopped()
}

// Also a checkpoint, which would otherwise give the user's work to the turn.
func TestServerSettlesBeforeACheckpoint(t *testing.T) {
	h := stoppedTurn(t)
	address, _ := serveHere(t, h.store)
	token, err := server.TokenFile(filepath.Join(h.store, server.TokenName))
	if err != nil {
		t.Fatal(err)
	}
	checkpoints := stetv1connect.NewCheckpointServiceClient(testClient(t, address, token).HTTP())
	if _, err := checkpoints.Create(t.Context(), &stetv1.CreateCheckpointRequest{Workspace: h.dir, Label: "mine"}); err != nil {
		t.Fatal(err)
	}
	h.stet(0, "rewind", "-c", stopped, "before:turn:1", "-y")
	h.checkStopped()
}

// A transcript that cannot be read fails no call: the turn is still open, and named.
func TestServerGoesOnWithoutATranscript(t *testing.T) {
	h := stoppedTurn(t)
	home := filepath.Join(filepath.Dir(h.dir), "home", ".claude", "projects", "-work", stopped+".jsonl")
	if err := errors.Join(os.Remove(home), os.Mkdir(home, 0o700)); err != nil {
		t.Fatal(err)
	}
	address, _ := serveHere(t, h.store)
	token, err := server.TokenFile(filepath.Join(h.store, server.TokenName))
	if err != nil {
		t.Fatal(err)
	}
	checkpoints := stetv1connect.NewCheckpointServiceClient(testClient(t, address, token).HTTP())
	plan, err := checkpoints.PlanRewind(t.Context(), &stetv1.PlanRewindRequest{Workspace: h.dir, Conversation: stopped, Ref: "before:turn:1", Files: true})
	if err != nil || len(plan.GetAtWork()) != 1 {
		t.Errorf("got %v, %v", plan, err)
	}
}

// A tool of another session does so, too.
func TestMCPSettlesInterruptedTurns(t *testing.T) {
	h := stoppedTurn(t)
	a := newAgent(t, h)
	text := a.call("rewind_preview", map[string]any{"session": stopped, "to": "before:turn:1"}, false, "delete `agent.txt`", "Left alone: `mine.txt`")
	token := regexp.MustCompile(`token="([^"]+)"`).FindStringSubmatch(text)[1]
	a.call("rewind", map[string]any{"token": token}, false, "Rewound 1 file")
	h.checkStopped()
}
