package transcript_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/transcript"
)

// kinds returns the turn and the kind of each message, read in lenient mode.
func kinds(t *testing.T, tr *transcript.Transcript) (out []string) {
	t.Helper()
	for m, err := range tr.Messages(t.Context(), &transcript.Options{Lenient: true}) {
		check(t, err)
		out = append(out, fmt.Sprintf("%d %s", m.Turn, m.Kind))
	}
	return out
}

// A turn without an id, or with an invalid one, is damage like any other.
func TestTurnsWithoutAnID(t *testing.T) {
	f := newFixture(t)
	one := turn(t, user("one"), say("a"))
	f.save(t, "c", one)
	for name, odd := range map[string]struct {
		id   []byte
		want []string
	}{
		"none":  {nil, []string{"1 text", "1 text", "2 error", "3 text", "3 text"}},
		"short": {[]byte("short"), []string{"1 text", "1 text", "2 error", "3 text", "3 text"}},
	} {
		id := one.Structure.ID().Bytes()
		for _, todos := range [][][]byte{nil, {[]byte("no id")}} { // with other damage and without
			raw, err := proto.Marshal(&agentv1.ConversationStateStructure{Turns: [][]byte{id, odd.id, id}, Todos: todos})
			check(t, err)
			root := blob.New(raw)
			check(t, f.blobs.Put(t.Context(), root))
			tr, err := f.reader.At(t.Context(), root.ID)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := kinds(t, tr); !slices.Equal(got, odd.want) {
				t.Errorf("%s: messages %q, want %q", name, got, odd.want)
			}
		}
	}
}

// What is lost outside of the turns must not keep a lenient reader from them.
func TestDamageOutsideOfTheTurns(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	c, err := f.Create(ctx, conversation.Info{ID: "c"})
	check(t, err)
	check(t, c.AppendTurn(ctx, turn(t, user("one"), say("a"))))
	todo := &agentv1.TodoItem{Content: "lost"}
	summary := &agentv1.ConversationSummary{Summary: "lost too"}
	check(t, c.SetTodos(ctx, todo))
	check(t, c.SetSummary(ctx, summary))
	check(t, c.AppendArchive(ctx, &agentv1.ConversationSummaryArchive{Summary: "found"}))
	saved, err := c.Save(ctx, nil)
	check(t, err)
	lost := map[blob.ID]bool{
		must(conversation.NewItem(todo)).ID(): true, must(conversation.NewItem(summary)).ID(): true,
	}
	blobs := failing{f.blobs, lost}
	tr, err := transcript.New(conversation.New(blobs, nil, nil), blobs).At(ctx, saved.Root)
	check(t, err)
	var last error
	for _, err := range tr.Messages(ctx, nil) {
		last = err
	}
	if !errors.Is(last, conversation.ErrDataLoss) {
		t.Errorf("a strict reader met %v, want ErrDataLoss", last)
	}
	want := []string{"0 summary", "0 error", "1 text", "1 text"}
	if got := kinds(t, tr); !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
}

// A turn whose last call goes on, and an empty one after it: what is appended later
// is what is written at once.
func TestBackgroundWithATurnThatGoesOnBeforeAnEmptyOne(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	c, err := f.Create(ctx, conversation.Info{ID: "c"})
	check(t, err)
	pending := call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{Args: &agentv1.ShellArgs{Command: "sleep"}}}})
	dir := t.TempDir()
	b := transcript.NewBackground(f.reader, dir, nil)
	defer func() { check(t, b.Close(ctx)) }()
	save := func(turns ...conversation.Turn) {
		t.Helper()
		for _, turn := range turns {
			check(t, c.AppendTurn(ctx, turn))
		}
		saved, err := c.Save(ctx, nil)
		check(t, err)
		check(t, b.Write("c", saved.Root))
		check(t, b.Wait(ctx))
	}
	save(turn(t, user("one"), pending), turn(t, nil))
	check(t, c.AppendStep(ctx, say("two")))
	save()
	got := readFile(t, transcript.FileOf(dir, "c"))
	if want := f.written(t, "c", transcript.JSONL, nil); got != want {
		t.Errorf("the file says\n%s\nwant\n%s", got, want)
	}
}
