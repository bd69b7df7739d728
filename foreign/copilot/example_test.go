package copilot_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/copilot"
)

// Read the turns of a session and of its subagents.
func Example() {
	ctx := context.Background()
	adapter := copilot.New()
	path := "testdata/subagent/session-state/fe3e6318-6728-4bab-a84c-3376c796122c"
	for s, err := range adapter.SessionAt(ctx, foreign.Host{}, path) {
		if err != nil {
			log.Fatal(err)
		}
		for turn, err := range adapter.Turns(ctx, s, "") {
			if err != nil {
				log.Fatal(err)
			}
			prompt, _, _ := strings.Cut(turn.Prompt, "\n")
			fmt.Printf("%q: %d steps\n", prompt, len(turn.Steps))
		}
	}
	// Output:
	// "turn one: make a file": 3 steps
	// "turn two: change it": 3 steps
	// "turn three: use a helper": 2 steps
	// "helper": 2 steps
}
