package workspace

import (
	"slices"
	"testing"
)

func TestSecretFiles(t *testing.T) {
	opts := &Options{Secrets: SecretFiles, Exclude: []string{"/private/", "*.log", "!keep.log"}}
	for path, want := range map[string]Reason{
		".env": ReasonSecret, "app/.env.production": ReasonSecret, "prod.env": ReasonSecret, "keys/id_rsa": ReasonSecret,
		"tls/server.key": ReasonSecret, "aws/credentials": ReasonSecret, "private/.env": ReasonExcluded, "a.log": ReasonExcluded,
		".env.example": "", ".env.local.example": "", "id_rsa.pub": "", "main.go": "", "environment.go": "", "keyboard.txt": "",
		"credentials/main.go": "", "crypto/tls/testdata/server.key": "", "testdata/server.key": "", "keep.log": "", "x/private/a": "",
	} {
		if got := opts.LeftOut(path); got != want {
			t.Errorf("LeftOut(%q) is %q, want %q", path, got, want)
		}
	}
	if got := (&Options{}).LeftOut(".env"); got != "" {
		t.Errorf("without patterns: %q", got)
	}
}

// Files with secrets are captured where an agent wrote them, where a tree has them, and
// where a .stetignore says so. Every index notices that the options changed.
func TestSecretsAreCapturedWhereAnAgentWroteThem(t *testing.T) {
	root, store := t.TempDir(), newStore()
	skip := &Options{Secrets: SecretFiles}
	write(t, root, map[string]string{".env": "1", "d/a.key": "2", "d/b": "3", "d/c.pem": "4", ".gitignore": "*.pfx\n", "x.pfx": "5", "d/.stetignore": "!c.pem\n"})
	first := mustScan(t, store, root, nil, skip)
	wantList(t, "first", listTree(t, store, first.Tree), ".gitignore file", "d dir", "d/.stetignore file", "d/b file", "d/c.pem file")
	wantList(t, "left out", skippedList(first.NotCaptured), ".env: secret", "d/a.key: secret", "x.pfx: ignored")
	again := mustScan(t, store, root, first.Index, skip)
	wantList(t, "left out again", skippedList(again.NotCaptured), ".env: secret", "d/a.key: secret", "x.pfx: ignored")

	wrote := mustScan(t, store, root, again.Index, &Options{Secrets: SecretFiles, Touched: []string{".env"}})
	wantList(t, "an agent wrote it", changeList(wrote.Changed), "add .env")
	write(t, root, map[string]string{".env": "changed"})
	later := mustScan(t, store, root, wrote.Index, skip)
	wantList(t, "it stays", changeList(later.Changed), "modify .env")

	for name, index := range map[string]*Index{"index": later.Index, "saved index": restored(t, later.Index), "tree": NewIndex(later.Tree)} {
		all := mustScan(t, store, root, index, nil)
		wantList(t, name+", captured", changeList(all.Changed), "add d/a.key")
		back := mustScan(t, store, root, all.Index, skip)
		wantList(t, name+", kept", changeList(back.Changed))
	}
	ignoring := mustScan(t, store, root, nil, &Options{Secrets: SecretFiles, NoIgnore: true})
	wantList(t, "without ignore files", skippedList(ignoring.NotCaptured), ".env: secret", "d/a.key: secret", "d/c.pem: secret", "x.pfx: secret")
}

// Excluded paths leave the tree, whoever wrote them, and are listed wherever they are: they
// were not removed.
func TestExcludedPathsLeaveTheTree(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"a.log": "1", "b": "2", "data/x": "3", "data/y": "4", "out/made.log": "5", "out/made": "6", "whole/c.log": "7", ".gitignore": "out/\nwhole/\n"})
	touched := []string{"out/made.log", "out/made", "whole"}
	first := mustScan(t, store, root, nil, &Options{Touched: touched})
	for _, o := range []Options{{}, {Touched: touched}, {NoIgnore: true}} {
		o.Exclude = []string{"*.log", "/data/"}
		next := mustScan(t, store, root, first.Index, &o)
		wantList(t, "changed", changeList(next.Changed), "remove a.log", "remove data", "remove data/x", "remove data/y", "remove out/made.log", "remove whole/c.log")
		for _, path := range []string{"a.log: excluded", "data: excluded", "out/made.log: excluded", "whole/c.log: excluded"} {
			if !slices.Contains(skippedList(next.NotCaptured), path) {
				t.Errorf("left out are %q, want %q", skippedList(next.NotCaptured), path)
			}
		}
		again := mustScan(t, store, root, next.Index, &o)
		wantList(t, "again", changeList(again.Changed))
	}
	exclude := &Options{Exclude: []string{"*.log", "/data/"}}
	next := mustScan(t, store, root, first.Index, exclude)

	// What a rewind replaces is read, and nothing beside it.
	paths := []string{"a.log", "data/x"}
	shown := mustScanPaths(t, store, root, next.Index, paths, &Options{Exclude: exclude.Exclude, Touched: paths, Reveal: true})
	wantList(t, "revealed", changeList(shown.Changed), "add a.log", "add data", "add data/x")
	last := mustScan(t, store, root, shown.Index, exclude)
	wantList(t, "left again", changeList(last.Changed), "remove a.log", "remove data", "remove data/x")
}
