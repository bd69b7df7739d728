package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
)

// What a reader refuses must not be saved: it would be lost.
func TestRootsBeyondTheLimitsAreRefused(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	prompts := make([][]byte, 100_000)
	for i := range prompts {
		prompts[i] = []byte("{}")
	}
	check(t, c.AppendPrompt(ctx, prompts...))
	must(c.Save(ctx, nil))
	check(t, c.AppendPrompt(ctx, []byte("{}")))
	if _, err := c.Save(ctx, nil); !errors.Is(err, conversation.ErrInvalid) {
		t.Errorf("one prompt too many: %v, want ErrInvalid", err)
	}
	if _, err := must(f.OpenReadOnly(ctx, "c")).Turns(ctx); err != nil {
		t.Errorf("what was saved before: %v", err)
	}
}

// Entries that were overruled are on the wire, too. They make room before a reader
// minds.
func TestOverruledEntriesDoNotCount(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	for _, text := range []string{"one", "two"} {
		file := conversation.File{Content: conversation.NewContent([]byte(text))}
		for i := range 50_001 {
			check(t, c.SetFile(ctx, fmt.Sprint(i), file))
		}
		must(c.Save(ctx, nil))
	}
	// Opening checks the root like every reader.
	file, ok, err := must(f.OpenReadOnly(ctx, "c")).File(ctx, "50000")
	if err != nil || !ok || file.Content.ID() != blob.Sum([]byte("two")) {
		t.Errorf("the last file is %v, %v, %v", file, ok, err)
	}
}
