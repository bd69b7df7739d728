package timeline_test

import (
	"slices"
	"testing"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/timeline"
)

func subagent(id, of string) conversation.Info {
	return conversation.Info{ID: id, Labels: map[string]string{conversation.LabelParent: of, conversation.LabelSubagent: "true"}}
}

// tree writes families as "a(b(c))".
func tree(families []*timeline.Family) (text string) {
	for _, f := range families {
		text += f.ID
		if len(f.Subagents) > 0 {
			text += "(" + tree(f.Subagents) + ")"
		}
	}
	return text
}

func TestSubagentsAreBelowTheirParents(t *testing.T) {
	plain := func(id string) conversation.Info { return conversation.Info{ID: id} }
	for _, c := range []struct {
		infos []conversation.Info
		want  string
	}{
		{nil, ""},
		{[]conversation.Info{subagent("b", "a"), plain("a"), plain("c")}, "a(b)c"},
		{[]conversation.Info{plain("a"), subagent("b", "a"), subagent("c", "b"), subagent("d", "a")}, "a(b(c)d)"},
		{[]conversation.Info{subagent("b", "gone"), plain("c")}, "bc"},
		{[]conversation.Info{subagent("a", "a"), subagent("b", "c"), subagent("c", "b")}, "abc"}, // in a circle
	} {
		families := timeline.Families(c.infos)
		if got := tree(families); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		n := len(families)
		for _, f := range families {
			n += f.Count()
		}
		if n != len(c.infos) {
			t.Errorf("%s: %d of %d", c.want, n, len(c.infos))
		}
	}
}

func TestRelated(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	first := f.spend(f.create("c"), "one", nil)
	for _, id := range []string{"s1", "s2"} {
		_, err := f.store.Create(ctx, subagent(id, "c"))
		f.must(err)
	}
	_, err := f.store.Fork(ctx, "c", first.Seq, conversation.Info{ID: "fork"})
	f.must(err)
	got, err := f.Related(ctx, "c")
	f.must(err)
	if len(got.Forks) != 1 || got.Forks[0].ID != "fork" || len(got.Subagents) != 2 {
		t.Errorf("%+v", got)
	}
	if none, err := f.Related(ctx, "s1"); err != nil || len(none.Forks)+len(none.Subagents) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestBelow(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	for id, parent := range map[string]string{"c": "", "s1": "c", "s2": "c", "deep": "s1", "round": "deep2", "deep2": "round", "other": "x"} {
		_, err := f.store.Create(ctx, subagent(id, parent))
		f.must(err)
	}
	for _, c := range []struct {
		of   []string
		want []string
	}{{[]string{"c"}, []string{"deep", "s1", "s2"}}, {[]string{"c", "s1"}, []string{"deep", "s2"}}, {[]string{"round"}, []string{"deep2"}}, {[]string{"s2"}, nil}} {
		below, err := f.Below(ctx, c.of...)
		f.must(err)
		var got []string
		for _, info := range below {
			got = append(got, info.ID)
		}
		if slices.Index(got, "deep") >= 0 && slices.Index(got, "deep") < slices.Index(got, "s1") {
			t.Errorf("%v: a subagent comes before the one that started it: %v", c.of, got)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.of, got, c.want)
		}
	}
}
