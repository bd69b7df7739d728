package claudecode_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/claudecode"
)

// A transcript is read turn by turn.
func ExampleAdapter_Turns() {
	s := foreign.Session{Agent: claudecode.Name, ID: "a-session", Path: "testdata/session.jsonl"}
	for turn, err := range claudecode.New().Turns(context.Background(), s, "") {
		if err != nil {
			panic(err)
		}
		prompt, _, _ := strings.Cut(turn.Prompt, "\n")
		fmt.Println(prompt, len(turn.Steps), turn.Automatic)
	}
	// Output:
	// turn one: make a file 3 false
	// turn two: change it 3 false
	// turn three: use a helper 2 false
	// <task-notification> 1 true
}
