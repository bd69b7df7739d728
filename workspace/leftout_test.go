package workspace

import "testing"

// The rules for a directory are those by which a scan passes over it.
func TestLeavesOutDirAgreesWithTheScan(t *testing.T) {
	files := map[string]string{
		".gitignore": "/top/\n*.d/\n!kept.d/\n", "sub/.gitignore": "deep\n", "sub/.stetignore": "!own.d\n", ".git/info/exclude": "noted\n",
		"top/x/f": "", "a.d/f": "", "kept.d/f": "", "sub/deep/x/f": "", "sub/own.d/f": "", "sub/top/f": "", "noted/f": "", "private/f": "", "plain/x/f": "",
	}
	root := t.TempDir()
	write(t, root, files)
	for _, opts := range []*Options{{}, {NoIgnore: true}, {Exclude: []string{"private/"}}} {
		res, err := Scan(t.Context(), newStore(), root, nil, opts)
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]Reason)
		for _, k := range res.NotCaptured {
			want[k.Path] = k.Reason
		}
		for _, dir := range []string{"top", "a.d", "kept.d", "sub", "sub/deep", "sub/own.d", "sub/top", "noted", "private", "plain/x", "gone/x"} {
			if got, err := opts.LeavesOutDir(root, dir); err != nil || got != want[dir] {
				t.Errorf("%+v: %s: %q, %v, want %q", opts.Exclude, dir, got, err, want[dir])
			}
		}
		if got, err := opts.LeavesOutDir(root, "top/x"); err != nil || got != want["top"] {
			t.Errorf("top/x: %q, %v, want %q as of top", got, err, want["top"])
		}
	}
	if _, err := (&Options{}).LeavesOutDir(root, "../x"); err == nil {
		t.Error("a directory outside was accepted")
	}
}
