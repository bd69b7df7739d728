package connect_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/connect"
)

// An entry is added to a list of settings, and taken out again.
func Example() {
	dir, err := os.MkdirTemp("", "settings")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	change := foreign.Change{Path: filepath.Join(dir, "settings.json"), Hooks: []foreign.HookEntry{{
		List: []string{"hooks", "Stop"}, Value: `{"command":"stet hook agent Stop"}`, Ours: "hook agent Stop",
	}}}
	if err := os.WriteFile(change.Path, []byte("{\"model\": \"opus\"} // mine\n"), 0o600); err != nil {
		panic(err)
	}
	for _, step := range []func(foreign.Change) (connect.Result, error){connect.Apply, connect.Revert} {
		result, err := step(change)
		fmt.Print(string(result.After), err, "\n")
	}
	// Output:
	// {"model": "opus", "hooks": { "Stop": [ {"command":"stet hook agent Stop"} ] }} // mine
	// <nil>
	// {"model": "opus"} // mine
	// <nil>
}
