package workspace_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/workspace"
)

// An agent works in a directory; two scans tell what it did and keep both
// states.
func Example() {
	ctx := context.Background()
	store := blob.Checked(memblob.New())
	root, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	save := func(name, content string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			log.Fatal(err)
		}
	}

	save("main.go", "package main\n")
	save(".gitignore", "*.log\n")
	save("debug.log", "noise\n")
	before, err := workspace.Scan(ctx, store, root, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range before.NotCaptured {
		fmt.Printf("not captured: %s (%s)\n", s.Path, s.Reason)
	}

	save("main.go", "package shop\n")
	save("retry.go", "package shop\n")
	after, err := workspace.Scan(ctx, store, root, before.Index, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range after.Changed {
		fmt.Println(c.Op(), c.Path)
	}

	e, err := workspace.Lookup(ctx, store, before.Tree, "main.go")
	if err != nil {
		log.Fatal(err)
	}
	old, err := workspace.ReadFile(ctx, store, e)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("before: %s", old)
	// Output:
	// not captured: debug.log (ignored)
	// modify main.go
	// add retry.go
	// before: package main
}

// With the paths that an edit tool reports, capture costs what was edited,
// however large the tree is.
func ExampleScanPaths() {
	ctx := context.Background()
	store := blob.Checked(memblob.New())
	root, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	first, err := workspace.Scan(ctx, store, root, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "new.go"), nil, 0o644); err != nil {
		log.Fatal(err)
	}
	next, err := workspace.ScanPaths(ctx, store, root, first.Index, []string{"new.go"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next.Stats.Files, "file looked at,", len(next.Changed), "changed")
	// Output: 1 file looked at, 1 changed
}
