package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/server"
)

// A message goes to the agent of a server; the conversation is kept in the store of the
// caller, goes on with the next message, and outlives a lost connection.
func TestAskTheAgentOfAServer(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	script := filepath.Join(home, "script.json")
	lines := `[[{"say":"one"},{"disconnect":true},{"shell":"touch ran"},{"say":"two"}],[{"say":"you are back"}]]`
	if err := os.WriteFile(script, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs, mine := filepath.Join(home, "theirs"), filepath.Join(home, "mine")
	address, _ := serveHere(t, theirs, "--agent", "scripted", "--agent-script", script)
	token, err := os.ReadFile(filepath.Join(theirs, server.TokenName))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("STET_TOKEN", strings.TrimSpace(string(token)))
	t.Chdir(t.TempDir())
	out, _ := runImport(t, ExitOK, "--store", mine, "ask", "hello there", "--from", address, "--json")
	var got askJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Schema != "stet.ask.v1" || got.Text != "one\n\ntwo" || got.Resumed == 0 || got.Turns != 1 {
		t.Fatalf("%s: %v", out, err)
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("a tool was run")
	}
	out, _ = runImport(t, ExitOK, "--store", mine, "ask", "-c", got.Conversation, "once more", "--from", address)
	if out != "you are back\n" {
		t.Errorf("the second answer is %q", out)
	}
	out, _ = runImport(t, ExitOK, "--store", mine, "export", got.Conversation)
	for _, want := range []string{"hello there", "two", "once more", "you are back"} {
		if !strings.Contains(out, want) {
			t.Errorf("the conversation lacks %q: %s", want, out)
		}
	}
	out, _ = runImport(t, ExitOK, "--store", mine, "ls")
	if !strings.Contains(out, "hello there") {
		t.Errorf("ls: %s", out)
	}
	runImport(t, ExitOK, "--store", mine, "fsck", "--read-data")
	runImport(t, ExitNotFound, "--store", mine, "ask", "-c", "nobody", "hi", "--from", address)
	runImport(t, ExitUsage, "--store", mine, "ask", "--from", address)
	// The state of the conversation is lost: nothing is sent.
	t.Setenv("STET_STORE", mine)
	if err := fixtureLoseRoot(got.Conversation, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, said := runImport(t, ExitDamage, "--store", mine, "ask", "-c", got.Conversation, "hi", "--from", address); !strings.Contains(said, "data loss") || !strings.Contains(said, got.Conversation) {
		t.Errorf("asking with a lost state: %s", said)
	}
	runImport(t, ExitUsage, "--store", mine, "ask", "hi")
	runImport(t, ExitUsage, "--store", address, "ask", "hi", "--from", address)
	runImport(t, ExitUnreachable, "--store", mine, "ask", "hi", "--from", "http://127.0.0.1:1")
}
