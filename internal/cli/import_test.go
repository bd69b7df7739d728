package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const editorFixture = "../../foreign/cursor/testdata/state.vscdb"

// runImport runs a command in this process, with a store and a home of the test.
func runImport(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := Main(args, strings.NewReader(""), &out, &errOut); code != want {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

func TestImportOfAnEditorStore(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("STET_STORE", filepath.Join(home, "store"))
	data, err := os.ReadFile(editorFixture)
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(home, "Cursor", "User", "globalStorage", "state.vscdb")
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := runImport(t, ExitOK, "import", "--from", "cursor", "-y", "--json")
	var got importJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != "stet.import.v1" || got.Conversations != 2 || got.Messages != 4 || got.Checkpoints != 4 || got.Agents != 1 || len(got.Skipped) != 0 {
		t.Errorf("import = %+v", got)
	}
	for _, verb := range [][]string{{"fsck", "--read-data"}, {"gc", "--grace", "0s"}, {"fsck", "--read-data"}} {
		runImport(t, ExitOK, verb...)
	}
	out, _ = runImport(t, ExitOK, "import", place)
	if !strings.HasPrefix(out, "imported 0 conversations with 0 messages and 0 checkpoints, 0 blobs") {
		t.Errorf("second import: %s", out)
	}
	out, _ = runImport(t, ExitOK, "du", "--store", place)
	if !strings.Contains(out, "25 rows  agentKv:blob\n") {
		t.Errorf("du: %s", out)
	}
}

func TestTruncatedStoreAsksForRescue(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("STET_STORE", filepath.Join(home, "store"))
	data, err := os.ReadFile(editorFixture)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(home, "state.vscdb")
	if err := os.WriteFile(cut, data[:len(data)-4096], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr := runImport(t, ExitDamage, "import", cut); !strings.Contains(stderr, "--rescue") {
		t.Errorf("stderr = %q", stderr)
	}
}
