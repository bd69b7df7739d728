package timeline_test

import (
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/timeline"
)

// took is what a test says about a turn.
func took(model string, tokens int64, usd float64, seconds int) *conversation.TurnDetails {
	d := &conversation.TurnDetails{Model: model, Input: tokens, Started: time.UnixMilli(1_000_000)}
	d.Ended = d.Started.Add(time.Duration(seconds) * time.Second)
	if usd >= 0 {
		d.CostUSD = &usd
	}
	return d
}

// spend saves a turn with details.
func (f *fixture) spend(c *conversation.Conversation, message string, d *conversation.TurnDetails) conversation.Save {
	f.t.Helper()
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: message, MessageId: message})
	f.must(err)
	f.must(c.AppendTurn(f.t.Context(), turn))
	save, err := c.Save(f.t.Context(), &conversation.SaveOptions{MessageID: message, Kind: conversation.KindImport, Turn: d})
	f.must(err)
	return save
}

func (f *fixture) create(id string) *conversation.Conversation {
	f.t.Helper()
	c, err := f.store.Create(f.t.Context(), conversation.Info{ID: id})
	f.must(err)
	return c
}

func (f *fixture) spent(id string, tokens int64, usd float64, took time.Duration, model string) {
	f.t.Helper()
	got, err := f.Spent(f.t.Context(), id)
	f.must(err)
	cost := 0.0
	if got.CostUSD != nil {
		cost = *got.CostUSD
	}
	if got.Tokens() != tokens || cost != usd || (got.CostUSD == nil) != (usd == 0) || got.Duration != took || got.Model != model {
		f.t.Errorf("%s: %d tokens, %v dollars, %v, %q; want %d, %v, %v, %q", id, got.Tokens(), cost, got.Duration, got.Model, tokens, usd, took, model)
	}
}

// A turn counts once, as it was saved last, also if a rewind left it behind; what a fork
// shares with its origin was paid for there.
func TestConversationsSumUpTheirTurns(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	f.spent("nobody", 0, 0, 0, "")
	c := f.create("c")
	first := f.spend(c, "one", took("small", 10, 0.25, 2))
	f.spend(c, "two", took("large", 20, 0.5, 3))
	_, err := c.Save(ctx, &conversation.SaveOptions{MessageID: "two", Kind: conversation.KindImport, Turn: took("large", 25, 0.75, 4)})
	f.must(err)
	f.spent("c", 35, 1, 6*time.Second, "large")
	_, err = c.Rewind(ctx, first.Seq, nil)
	f.must(err)
	f.spend(c, "three", took("", 1, -1, 0))
	f.spent("c", 36, 1, 6*time.Second, "large")
	fork, err := f.store.Fork(ctx, "c", first.Seq, conversation.Info{ID: "d"})
	f.must(err)
	f.spent("d", 0, 0, 0, "")
	f.spend(fork, "four", took("other", 7, 0, 1))
	f.spent("d", 7, 0, time.Second, "other") // a cost of nothing is not known
	f.spend(f.create("e"), "one", nil)
	if got, err := f.Spent(ctx, "e"); err != nil || !got.IsZero() {
		t.Errorf("a conversation without details: %+v, %v", got, err)
	}
}

// The details of a state's turns are those of the saves that led to it.
func TestDetailsOfAState(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	c := f.create("c")
	first := f.spend(c, "one", took("a", 1, -1, 0))
	second := f.spend(c, "two", took("b", 2, -1, 0))
	_, err := c.Rewind(ctx, first.Seq, nil)
	f.must(err)
	f.spend(c, "other two", took("c", 3, -1, 0))
	third := f.spend(c, "three", nil)
	same := func(id string, root blob.ID, want string) {
		t.Helper()
		details, err := f.Details(ctx, id, root)
		f.must(err)
		got := ""
		for n := uint64(1); n <= 5; n++ {
			if d := details[n]; d != nil {
				got += d.Model
			} else {
				got += "-"
			}
		}
		if got != want {
			t.Errorf("%s at %s: %s, want %s", id, root.Short(), got, want)
		}
	}
	same("c", blob.ID{}, "ac---")
	same("c", second.Root, "ab---")
	same("c", first.Root, "a----")
	same("nobody", blob.ID{}, "-----")
	fork, err := f.store.Fork(ctx, "c", third.Seq, conversation.Info{ID: "d"})
	f.must(err)
	f.spend(fork, "four", took("d", 4, -1, 0))
	again, err := f.store.Fork(ctx, "d", 0, conversation.Info{ID: "e"})
	f.must(err)
	f.spend(again, "five", took("e", 5, -1, 0))
	same("e", blob.ID{}, "ac-de")
	back, err := f.store.Fork(ctx, "c", third.Seq, conversation.Info{ID: "g"})
	f.must(err)
	_, err = back.RewindInherited(ctx, first.Root, nil)
	f.must(err)
	same("g", blob.ID{}, "a----")
	f.spend(back, "instead", took("g", 6, -1, 0))
	same("g", blob.ID{}, "ag---")
	f.must(f.store.Delete(ctx, "c", nil))
	same("e", blob.ID{}, "---de")
}

// A checkpoint shows what its turn took, found by its state or, where the agent wrote its
// record later, by its message.
func TestTurnsSayWhatTheyTook(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	c := f.create("c")
	cost := 0.5
	d := &conversation.TurnDetails{Model: "m", Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, CostUSD: &cost, Interrupted: true}
	save := f.spend(c, "one", d)
	at := func(root blob.ID, turn uint64, message string) *timeline.Turn {
		t.Helper()
		got, err := f.Turn(ctx, &checkpoint.Record{Conversation: "c", Root: root, Turn: turn, MessageID: message, Side: checkpoint.After})
		f.must(err)
		return got
	}
	for name, got := range map[string]*timeline.Turn{"by state": at(save.Root, 1, ""), "by message": at(blob.ID{}, 1, "one")} {
		if got.Model != "m" || got.Tokens() != 10 || got.CostUSD == nil || *got.CostUSD != 0.5 || !got.Interrupted {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, got := range map[string]*timeline.Turn{"another turn": at(save.Root, 2, ""), "unknown": at(blob.ID{}, 1, "")} {
		if !got.Spent.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	last, err := f.TurnOf(ctx, save)
	if err != nil || last.Text() != "one" || last.Model != "m" {
		t.Errorf("the last turn: %+v, %v", last, err)
	}
	info, err := f.store.Get(ctx, "c")
	if err != nil || timeline.SpentOf(info.Turn).Model != "m" {
		t.Errorf("the conversation: %+v, %v", info, err)
	}
}
