package carry_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/carry"
)

// A conversation is the copy of an agent's session. After it was rewound to its first turn
// the agent continues there, in a session of its own.
func ExamplePrepare() {
	dir, err := os.MkdirTemp("", "carry")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, _, err := copied(dir)
	if err != nil {
		panic(err)
	}
	if err := rewind(store, 1); err != nil {
		panic(err)
	}
	c, err := carry.Prepare(context.Background(), store, foreign.Host{Home: dir}, "s1")
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Command[:2], "in", c.Dir)
	// Output: [pi --session] in /workspace
}
