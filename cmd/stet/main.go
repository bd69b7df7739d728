// Command stet records what AI agents did, every conversation and every file, and
// lets people undo any of it. Run `stet help` for its verbs.
package main

import (
	"os"

	"github.com/stet-dev/stet/internal/cli"
	_ "github.com/stet-dev/stet/internal/cli/unhurried" // before other packages are initialised
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
