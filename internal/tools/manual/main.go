// Command manual writes the manual pages and the completions of the command line into a
// directory, for a release.
//
//	go run ./internal/tools/manual DIR 2026-11-17T12:00:00Z
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("needs a directory and a date, got %q", args)
	}
	when, err := time.Parse(time.RFC3339, args[1])
	if err != nil {
		return err
	}
	files, err := cli.Manual(when)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(args[0], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
