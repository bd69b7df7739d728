package cursor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/foreign/cursor"
)

func TestFind(t *testing.T) {
	settings := map[string]string{
		"linux": ".config", "darwin": "Library/Application Support", "windows": "AppData/Roaming",
	}
	for goos, config := range settings {
		t.Run(goos, func(t *testing.T) {
			home := t.TempDir()
			write := func(path, content string) string {
				path = filepath.Join(home, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
				return path
			}
			user := config + "/Cursor/User/"
			global := write(user+"globalStorage/state.vscdb", "12345")
			folder := write(user+"workspaceStorage/aa/state.vscdb", "1")
			write(user+"workspaceStorage/aa/workspace.json", `{"folder": "file:///home/u/project"}`)
			multi := write(user+"workspaceStorage/bb/state.vscdb", "1")
			write(user+"workspaceStorage/bb/workspace.json", `{"workspace": "file:///home/u/x.code-workspace"}`)
			broken := write(user+"workspaceStorage/cc/state.vscdb", "1")
			write(user+"workspaceStorage/cc/workspace.json", `{broken`)
			write(user+"workspaceStorage/dd/workspace.json", `{"folder": "file:///without/a/store"}`)
			chat := write(".cursor/chats/hash/uuid/store.db", "12")
			want := []cursor.Location{
				{Path: global, Kind: cursor.KindEditor, Size: 5},
				{Path: folder, Kind: cursor.KindEditor, Workspace: "file:///home/u/project", Size: 1},
				{Path: multi, Kind: cursor.KindEditor, Workspace: "file:///home/u/x.code-workspace", Size: 1},
				{Path: broken, Kind: cursor.KindEditor, Size: 1},
				{Path: chat, Kind: cursor.KindAgent, Size: 2},
			}
			if d := cmp.Diff(want, cursor.Find(&cursor.FindOptions{GOOS: goos, Home: home})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFindWithoutPlaces(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	if got := cursor.Find(nil); len(got) != 0 {
		t.Errorf("Find in an empty home = %v", got)
	}
}

func TestIsStore(t *testing.T) {
	for path, want := range map[string]bool{
		"testdata/state.vscdb": true, "testdata": true, "testdata/sdk-store/sqlite": true, "testdata/sdk-store/jsonl": true,
		"testdata/expected.json": true, "testdata/sdk-store": false, "testdata/none": false,
	} {
		if got := cursor.IsStore(path); got != want {
			t.Errorf("IsStore(%s) = %v, want %v", path, got, want)
		}
	}
}
