package qwen_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/qwen"
)

// A transcript is read turn by turn.
func ExampleAdapter_Turns() {
	s := foreign.Session{Agent: qwen.Name, ID: "a-session", Path: "testdata/session.jsonl"}
	for turn, err := range qwen.New().Turns(context.Background(), s, "") {
		if err != nil {
			panic(err)
		}
		prompt, _, _ := strings.Cut(turn.Prompt, "\n")
		fmt.Println(prompt, len(turn.Steps))
	}
	// Output:
	// turn one: make a file 3
	// turn two: change it 4
	// turn three: use a helper 2
}
