package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stet-dev/stet/conversation"
)

// inherited lists what a conversation has from others, as in "c2 c1".
func (f *fixture) inherited(t testing.TB, id string) (places []string) {
	t.Helper()
	for save, err := range f.Inherited(context.Background(), id) {
		check(t, err)
		places = append(places, fmt.Sprint(save.Conversation, save.Seq))
	}
	return places
}

func TestAForkGoesBackToStatesOfItsOrigin(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	saves := f.grow(t, c, "1", "2", "3")
	d := must(f.Fork(ctx, "c", 2, conversation.Info{ID: "d"}))
	f.grow(t, d, "mine")
	if got := f.inherited(t, "d"); !slices.Equal(got, []string{"c2", "c1"}) {
		t.Errorf("d inherited %v", got)
	}
	if got := f.inherited(t, "c"); len(got) > 0 {
		t.Errorf("c inherited %v", got)
	}
	back, err := d.RewindInherited(ctx, saves[0].Root, &conversation.RewindOptions{Author: "me"})
	check(t, err)
	if back.Seq != 3 || back.Parent != 0 || back.RewoundFrom != 2 || back.Turns != 1 || back.Kind != conversation.KindRewind || back.MessageID != "m-1" {
		t.Errorf("it made %+v", back)
	}
	f.expectTexts(t, "d", "1")
	f.expectTexts(t, "c", "1", "2", "3")
	d = must(f.Open(ctx, "d"))
	f.grow(t, d, "other")
	f.expectTexts(t, "d", "1", "other")
	must(d.Rewind(ctx, 2, nil)) // the undo
	f.expectTexts(t, "d", "1", "2", "mine")

	for name, save := range map[string]conversation.Save{"after the fork": saves[2], "of nobody": {Root: conversation.EmptyRoot()}} {
		if _, err := d.RewindInherited(ctx, save.Root, nil); !errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("rewind to a state %s: %v", name, err)
		}
	}
}

// A fork of a fork has what led to both, without what a rewind in between left behind.
func TestAForkOfAForkInherits(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	saves := f.grow(t, c, "1", "2", "3")
	d := must(f.Fork(ctx, "c", 3, conversation.Info{ID: "d"}))
	f.grow(t, d, "4")
	must(f.Fork(ctx, "d", 2, conversation.Info{ID: "e"}))
	if got := f.inherited(t, "e"); !slices.Equal(got, []string{"d2", "d1", "c3", "c2", "c1"}) {
		t.Errorf("e inherited %v", got)
	}
	must(d.RewindInherited(ctx, saves[1].Root, nil))
	f.grow(t, d, "other")
	must(f.Fork(ctx, "d", 0, conversation.Info{ID: "f"}))
	if got := f.inherited(t, "f"); !slices.Equal(got, []string{"d4", "d3", "c2", "c1"}) {
		t.Errorf("f inherited %v", got)
	}
	must(d.StartOver(ctx, nil))
	f.grow(t, d, "new")
	must(f.Fork(ctx, "d", 0, conversation.Info{ID: "g"}))
	if got := f.inherited(t, "g"); !slices.Equal(got, []string{"d6", "d5"}) {
		t.Errorf("g inherited %v", got)
	}
	check(t, f.Delete(ctx, "c", nil))
	if got := f.inherited(t, "e"); !slices.Equal(got, []string{"d2", "d1"}) {
		t.Errorf("e inherited %v from a conversation that was removed", got)
	}
}
