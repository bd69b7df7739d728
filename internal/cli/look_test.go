package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/workspace"
)

// Verbs that look read files, and store nothing of them.
func TestLookingStoresNothing(t *testing.T) {
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	t.Setenv("STET_STORE", store)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Main(append([]string{"-C", dir}, args...), strings.NewReader(""), &out, &errs); code != 0 && code != ExitNotFound {
			t.Fatalf("stet %s: code %d: %s", strings.Join(args, " "), code, &errs)
		}
		return out.String()
	}
	blobs := func() (sqlite.Count, int64) {
		t.Helper()
		db, err := stet.Open(t.Context(), store, nil)
		if err != nil {
			t.Fatal(err)
		}
		stats, err := db.Engine().Stats(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return stats.Blobs, stats.Rows[""].N
	}
	looks := func(when string) {
		t.Helper()
		for _, verb := range []string{
			"status", "status --json", "status --reread", "log", "log --json", "diff", "diff --stat", "diff @ @", "diff c1 @", "diff @ c1",
			"show @", "show c1", "rewind c1 --dry-run", "rewind c1 --theirs --dry-run --json", "rewind c1 --exact --dry-run",
		} {
			before, rows := blobs()
			run(strings.Fields(verb)...)
			if after, now := blobs(); after != before || now != rows {
				t.Errorf("%s, %s: %d blobs of %d bytes and %d rows became %d, %d and %d", when, verb, before.N, before.Bytes, rows, after.N, after.Bytes, now)
			}
		}
	}
	large := strings.Repeat("0123456789abcdef", workspace.ChunkedFrom/16+1)
	write("secret", "hunter2\n")
	write("large", large)
	run("init")
	looks("without checkpoints")
	run("checkpoint")
	looks("unchanged")
	write("secret", "hunter3\n")
	write("large", large+"more")
	write("new", "new\n")
	if err := os.Symlink("new", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	looks("changed")
	if out := run("status"); !strings.Contains(out, "4 files since c1") {
		t.Errorf("status: %s", out)
	}
	if out := run("diff"); !strings.Contains(out, "+hunter3") || !strings.Contains(out, "+new") {
		t.Errorf("diff: %s", out)
	}
	if err := os.RemoveAll(filepath.Join(store, "workspaces")); err != nil { // the stat index
		t.Fatal(err)
	}
	looks("without an index")
}
