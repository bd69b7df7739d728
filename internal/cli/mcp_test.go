package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agent is a household in which an agent uses stet mcp.
type agent struct {
	*household
	session *mcp.ClientSession
}

// mcpCommand is stet mcp as an agent starts it.
func (h *household) mcpCommand(args ...string) *exec.Cmd {
	h.t.Helper()
	program, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	return &exec.Cmd{Path: program, Args: append([]string{"stet", "--store", h.store, "mcp"}, args...), Dir: h.dir, Env: h.env}
}

func newAgent(t *testing.T, h *household, args ...string) *agent {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: h.mcpCommand(args...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("the server did not end as it should: %v", err)
		}
	})
	return &agent{h, session}
}

// call calls a tool. The answer must be an error if failed is set.
func (a *agent) call(name string, args any, failed bool, want ...string) string {
	a.t.Helper()
	res, err := a.session.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError != failed {
		a.t.Fatalf("%s: error %v, want %v:\n%s", name, res.IsError, failed, text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			a.t.Errorf("%s: no %q in:\n%s", name, w, text)
		}
	}
	return text
}

func (h *household) write(name, content string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *household) want(name, content string) {
	h.t.Helper()
	got, err := os.ReadFile(filepath.Join(h.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		got, err = []byte("(none)"), nil
	}
	if err != nil || string(got) != content {
		h.t.Errorf("%s has %q, want %q (%v)", name, got, content, err)
	}
}

// workshop is a household in which session one works on its first turn, after a turn of
// session two and changes of the user.
func workshop(t *testing.T) *household {
	h := newHousehold(t, "CLAUDE_CODE_SESSION_ID=one", "CLAUDE_PROJECT_DIR=", "GEMINI_CWD=")
	h.write("a.txt", "zero\n")
	h.write("two.txt", "zero\n")
	h.stet(0, "-c", "two", "checkpoint", "--turn", "1", "--before")
	h.write("two.txt", "of two\n")
	h.stet(0, "-c", "two", "checkpoint", "--turn", "1", "--after")
	h.write("user.txt", "of the user\n")
	h.stet(0, "-c", "one", "checkpoint", "--turn", "1", "--before")
	h.write("a.txt", "first\n")
	h.write("b.txt", "made\n")
	return h
}

func TestMCPServesTheTools(t *testing.T) {
	t.Parallel()
	a := newAgent(t, workshop(t))
	if got := a.session.InitializeResult().ServerInfo.Name; got != "stet" {
		t.Errorf("the server is called %q", got)
	}
	list, err := a.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names, reading, changing []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Annotations.ReadOnlyHint {
			reading = append(reading, tool.Name)
		}
		if *tool.Annotations.DestructiveHint {
			changing = append(changing, tool.Name)
		}
	}
	for _, c := range []struct{ got, want []string }{
		{names, []string{"checkpoint", "diff", "history", "rewind", "rewind_preview", "search", "show", "undo"}},
		{reading, []string{"diff", "history", "rewind_preview", "search", "show"}},
		{changing, []string{"rewind", "undo"}},
	} {
		if slices.Sort(c.got); !slices.Equal(c.got, c.want) {
			t.Errorf("tools %q, want %q", c.got, c.want)
		}
	}

	type args map[string]any
	a.call("history", nil, false, "Calling session: `one`", "in turn 1", "`a.txt`", "session `two`")
	a.call("search", args{"query": "nothing"}, false, "Nothing found")
	a.call("show", args{"ref": "c1"}, false, "Checkpoint `c1`")
	a.call("diff", args{"stat": true}, false, "2 files")
	a.call("checkpoint", args{"label": "half way"}, false, "Saved as `c4`")
	text := a.call("rewind_preview", args{"to": "before:turn:1"}, false, "restore `a.txt`", "delete `b.txt`", "calling session only")
	token := regexp.MustCompile(`token="([^"]+)"`).FindStringSubmatch(text)[1]

	// Wrong calls are answers.
	a.call("rewind", args{"token": "0123"}, true, "no plan has this token")
	a.call("rewind", args{}, true, "token")
	a.call("rewind", args{"token": token, "force": true}, true, "force")
	a.call("show", args{"ref": 5}, true)
	a.call("show", args{"ref": "c99999999"}, true, "not found")
	a.call("diff", args{"paths": []string{"/etc/passwd"}}, true, "outside the workspace")
	a.call("undo", nil, true, "no rewind to undo")
	if _, err := a.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil {
		t.Error("an unknown tool was called")
	}

	// A plan that has changed is refused, then carried out and undone.
	a.write("b.txt", "changed since\n")
	a.call("rewind", args{"token": token}, true, "no longer as in the preview")
	a.want("b.txt", "changed since\n")
	text = a.call("rewind_preview", nil, false, "before turn 1")
	token = regexp.MustCompile(`token="([^"]+)"`).FindStringSubmatch(text)[1]
	a.call("rewind", args{"token": token}, false, "Rewound 2 files")
	a.want("a.txt", "zero\n")
	a.want("b.txt", "(none)")
	a.want("two.txt", "of two\n")
	a.want("user.txt", "of the user\n")
	a.call("undo", nil, false, "restored 2 files")
	a.want("a.txt", "first\n")
	a.want("b.txt", "changed since\n")
}

// lines sends lines to stet mcp and returns the messages and the exit code.
func (h *household) lines(input string) (messages []map[string]any, code int) {
	h.t.Helper()
	cmd := h.mcpCommand()
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	for scan := bufio.NewScanner(&out); scan.Scan(); {
		var m map[string]any
		if err := json.Unmarshal(scan.Bytes(), &m); err != nil || m["jsonrpc"] != "2.0" {
			h.t.Fatalf("stdout has %q: %v", scan.Bytes(), err)
		}
		messages = append(messages, m)
	}
	return messages, cmd.ProcessState.ExitCode()
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

func TestMCPSurvivesWhatIsNotAMessage(t *testing.T) {
	t.Parallel()
	h := workshop(t)
	messages, code := h.lines("garbage\n\n{\"half\":\n" + hello + `[{"jsonrpc":"2.0","id":1,"method":"ping"}]
{"jsonrpc":"1.0","id":2,"method":"ping"}
{"jsonrpc":"2.0","id":3,"method":"no/such/method"}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"history"}}
{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"nonsense"}
` + `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"` + strings.Repeat("x", 5<<20) + `"}}
{"jsonrpc":"2.0","id":7,"method":"ping"}
{"jsonrpc":"2.0","id":8,"meth`)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	failed := func(m map[string]any) any {
		e, _ := m["error"].(map[string]any)
		return e["code"]
	}
	answers, unknown := map[any]map[string]any{}, 0
	for _, m := range messages {
		if m["id"] == nil {
			unknown++
			continue
		}
		answers[m["id"]] = m
	}
	if unknown != 4 { // two that are not JSON, a batch, and one that is too long
		t.Errorf("%d answers without an id: %v", unknown, messages)
	}
	for id, want := range map[any]any{"hello": nil, 2.0: -32600.0, 3.0: -32601.0, 4.0: nil, 7.0: nil} {
		if m := answers[id]; m == nil || failed(m) != want {
			t.Errorf("call %v: %v, want %v", id, m, want)
		}
	}
	if m := answers[5.0]; m == nil || m["error"] == nil {
		t.Errorf("a call with wrong parameters: %v", m)
	}
	if answers[8.0] != nil {
		t.Error("half a call was answered")
	}
	// The calls before the end of the input are answered, although it has ended.
	if text, _ := json.Marshal(answers[4.0]); !strings.Contains(string(text), "Calling session") {
		t.Errorf("history: %s", text)
	}
}

// TestMCPWithoutInitialize speaks as agents of the protocol of 2026-07-28 do: they ask
// what the server is and call tools without a handshake.
func TestMCPWithoutInitialize(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	messages, code := workshop(t).lines(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"diff","arguments":{"stat":true},` + meta + `}}
`)
	if code != 0 || len(messages) != 2 {
		t.Fatalf("exit code %d, %v", code, messages)
	}
	for _, m := range messages {
		if m["error"] != nil {
			t.Errorf("answer %v", m)
		}
	}
}

func TestMCPEndsWithASignal(t *testing.T) {
	t.Parallel()
	cmd := workshop(t).mcpCommand()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte(hello)); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadBytes('\n'); err != nil { // it serves
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

func TestMCPWithoutAStore(t *testing.T) {
	t.Parallel()
	h := newHousehold(t, "CLAUDE_CODE_SESSION_ID=", "CLAUDE_PROJECT_DIR=", "GEMINI_CWD=")
	h.write("a.txt", "zero\n")
	a := newAgent(t, h)
	a.call("history", nil, true, "nothing is recorded yet", "`checkpoint`")
	a.call("checkpoint", nil, false, "Saved as `c1`")
	a.call("history", nil, false, "Calling session: not known", "`c1`")
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	a.call("history", nil, true, "gone")
	a.call("checkpoint", nil, true, "gone")
}

func TestMCPOfALockedStore(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	clear := h.env
	h.env = append(slices.Clip(h.env), "STET_PASSPHRASE=open sesame, and more")
	h.stet(0, "keys", "init", "--passphrase")
	h.stet(0, "checkpoint")
	h.env = clear
	newAgent(t, h).call("history", nil, true, "STET_PASSPHRASE")
	h.env = append(slices.Clip(h.env), "STET_PASSPHRASE=open sesame, and more")
	newAgent(t, h, "-C", h.dir).call("history", nil, false, "`c1`")
}

func TestMCPFindsTheWorkspaceOfTheAgent(t *testing.T) {
	t.Parallel()
	h := workshop(t)
	sub := filepath.Join(h.dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for _, variable := range []string{"CLAUDE_PROJECT_DIR", "GEMINI_CWD"} {
		other := *h
		other.dir, other.env = elsewhere, append(slices.Clip(h.env), variable+"="+sub)
		newAgent(t, &other).call("history", nil, false, "`c3`")
	}
	newAgent(t, h, "--session", "two").call("history", nil, false, "Calling session: `two`")
}
