package conversation_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
)

func TestReceiveHistoryOfAnotherStore(t *testing.T) {
	ctx := context.Background()
	from, to := newFixture(t), newFixture(t)
	c := must(from.Create(ctx, conversation.Info{ID: "c", Title: "a talk"}))
	from.grow(t, c, "one", "two")
	records := must(from.Records(ctx, "c"))
	r := to.Receive(must(to.Records(ctx, "c")), nil)
	check(t, r.Create(ctx, records.Conversation))
	for _, save := range records.Saves {
		check(t, r.Append(ctx, save, nil))
	}
	info := must(to.Get(ctx, "c"))
	if info.Title != "a talk" || info.Save != 2 || info.Root != must(from.Head(ctx, "c")) {
		t.Errorf("got %+v", info)
	}
	if list := must(to.List(ctx, nil)); len(list.Conversations) != 1 {
		t.Errorf("listed %v", list)
	}
	if _, err := to.MessageHead(ctx, "c", "m-two"); err != nil {
		t.Error(err)
	}
	// Another receiver that knows less is refused.
	if err := to.Receive(&conversation.Records{ID: "c"}, nil).Create(ctx, records.Conversation); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("got %v", err)
	}
	late := proto.CloneOf(records.Saves[1])
	if err := r.Append(ctx, late, nil); !errors.Is(err, kv.ErrInvalidBatch) {
		t.Errorf("a save that is there: %v", err)
	}
}

// What a reader would refuse is not written.
func TestReceiverRefusesWhatReadersRefuse(t *testing.T) {
	ctx := context.Background()
	from, to := newFixture(t), newFixture(t)
	c := must(from.Create(ctx, conversation.Info{ID: "c"}))
	from.grow(t, c, "one")
	records := must(from.Records(ctx, "c"))
	bad := proto.CloneOf(records.Conversation)
	bad.CreatedAtMs = -1
	if err := to.Receive(&conversation.Records{ID: "c"}, nil).Create(ctx, bad); !conversation.Damaged(err) {
		t.Errorf("got %v", err)
	}
	if must(to.Remains(ctx, "c")) {
		t.Error("something was written")
	}
	r := to.Receive(&conversation.Records{ID: "c"}, nil)
	check(t, r.Create(ctx, records.Conversation))
	save := proto.CloneOf(records.Saves[0])
	save.Parent = 7
	if err := r.Append(ctx, save, nil); !conversation.Damaged(err) {
		t.Errorf("got %v", err)
	}
	if info := must(to.Get(ctx, "c")); info.Save != 0 {
		t.Errorf("got %+v", info)
	}
}

// A writer of the target is stale after the first save that is received, and one that
// saves in between makes the receiver fail.
func TestReceiverAndAnotherWriter(t *testing.T) {
	ctx := context.Background()
	from, to := newFixture(t), newFixture(t)
	c := must(from.Create(ctx, conversation.Info{ID: "c"}))
	from.grow(t, c, "one", "two", "three")
	records := must(from.Records(ctx, "c"))
	first := to.Receive(&conversation.Records{ID: "c"}, nil)
	check(t, first.Create(ctx, records.Conversation))
	check(t, first.Append(ctx, records.Saves[0], nil))

	second := to.Receive(must(to.Records(ctx, "c")), nil)
	check(t, second.Append(ctx, records.Saves[1], nil))
	if err := first.Append(ctx, records.Saves[1], nil); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
