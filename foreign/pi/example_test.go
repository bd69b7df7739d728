package pi_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/pi"
)

// Read the turns of a session.
func Example() {
	ctx := context.Background()
	adapter := pi.New()
	for s, err := range adapter.SessionAt(ctx, foreign.Host{}, "testdata/session.jsonl") {
		if err != nil {
			log.Fatal(err)
		}
		for turn, err := range adapter.Turns(ctx, s, "") {
			if err != nil {
				log.Fatal(err)
			}
			prompt, _, _ := strings.Cut(turn.Prompt, "\n")
			fmt.Printf("%s %q: %d steps\n", turn.ID, prompt, len(turn.Steps))
		}
	}
	// Output:
	// 62f0ad93 "turn one: make a file": 3 steps
	// 924fcfc0 "turn two: change it": 3 steps
	// a907f108 "turn three: just say": 1 steps
}
