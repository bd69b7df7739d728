package conversation_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stet-dev/stet/conversation"
)

// What is known about a turn is kept with its save, goes along with a rewind and a fork,
// and a later save without details does not inherit them.
func TestTurnDetails(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	cost := 0.25
	want := &conversation.TurnDetails{
		Model: "m", Started: time.UnixMilli(1000), Ended: time.UnixMilli(2000), Input: 1, Output: 2, CacheRead: 3,
		CacheWrite: 4, Reasoning: 5, CostUSD: &cost, Interrupted: true, Automatic: true, Done: true, Cut: "uuid", Mark: "17",
	}
	check(t, c.AppendTurn(ctx, must(conversation.NewTurn(user("one")))))
	first := must(c.Save(ctx, &conversation.SaveOptions{MessageID: "one", Turn: want}))
	if got := must(f.SaveAt(ctx, "c", first.Seq)).Turn; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	check(t, c.AppendTurn(ctx, must(conversation.NewTurn(user("two")))))
	if got := must(c.Save(ctx, nil)).Turn; got != nil {
		t.Errorf("the next save has %+v", got)
	}
	back := must(c.Rewind(ctx, first.Seq, nil))
	if got := must(f.SaveAt(ctx, "c", back.Seq)).Turn; !reflect.DeepEqual(got, want) {
		t.Errorf("after a rewind: %+v", got)
	}
	fork := must(f.Fork(ctx, "c", first.Seq, conversation.Info{ID: "d"}))
	unmarked := *want
	unmarked.Mark = ""
	if got := must(f.SaveAt(ctx, "d", fork.Head().Seq)).Turn; !reflect.DeepEqual(got, &unmarked) {
		t.Errorf("in a fork: %+v", got)
	}
}
