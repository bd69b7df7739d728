package gemini_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/gemini"
)

// Read the turns of a session.
func Example() {
	ctx := context.Background()
	adapter := gemini.New()
	for s, err := range adapter.SessionAt(ctx, foreign.Host{}, "testdata/session.jsonl") {
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
	// "turn three: use a helper": 3 steps
}
