package codex_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/codex"
)

// Read the turns of a session.
func Example() {
	ctx := context.Background()
	adapter := codex.New()
	host := foreign.Host{Getenv: func(name string) string { return "" }, Home: "/home/me"}
	path := "testdata/plain/sessions/2026/11/16/rollout-2026-11-16T12-05-19-01a1e43f-599f-7053-8add-d1d12d40e1ab.jsonl"
	for s, err := range adapter.SessionAt(ctx, host, path) {
		if err != nil {
			log.Fatal(err)
		}
		for turn, err := range adapter.Turns(ctx, s, "") {
			if err != nil {
				log.Fatal(err)
			}
			prompt, _, _ := strings.Cut(turn.Prompt, "\n")
			fmt.Printf("%q: %d steps, %d tokens read\n", prompt, len(turn.Steps), turn.Usage.Input)
		}
	}
	// Output:
	// "turn one: make a file": 3 steps, 300 tokens read
	// "turn two: change it": 3 steps, 300 tokens read
	// "turn three: use a helper": 3 steps, 300 tokens read
	// "helper": 2 steps, 200 tokens read
}
