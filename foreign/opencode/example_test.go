package opencode_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/opencode"
)

// Look at what a hook was given, and at what connects OpenCode.
func Example() {
	payload, err := os.ReadFile("testdata/payloads/tool.execute.before.json")
	if err != nil {
		log.Fatal(err)
	}
	adapter := opencode.New()
	e, err := adapter.Event("tool.execute.before", payload)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Kind == foreign.ToolStart, e.Call.Name, e.Call.Paths)
	changes, err := adapter.Connection(foreign.Host{Home: "/home/user"}, foreign.Connect{Command: []string{"stet", "hook", "opencode"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(changes[0].Path)
	sessions := 0
	for range adapter.Sessions(context.Background(), foreign.Host{Home: "/nowhere"}) {
		sessions++
	}
	fmt.Println(sessions, "sessions")
	// Output:
	// true write [/workspace/a.txt]
	// /home/user/.config/opencode/plugin/stet.js
	// 0 sessions
}
