package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// nests builds a state with subagents inside each other and returns its bytes;
// the blobs that it names are stored.
func nests(t *testing.T, f *fixture, how string, depth int) []byte {
	t.Helper()
	ctx := context.Background()
	turn := newTurn(t, "innermost")
	check(t, f.blobs.Put(ctx, blob.New(turn.Structure.Bytes()), blob.New(turn.UserMessage.Bytes())))
	state := &agentv1.ConversationStateStructure{Turns: [][]byte{turn.Structure.ID().Bytes()}}
	encode := func() []byte { return must(proto.MarshalOptions{Deterministic: true}.Marshal(state)) }
	for n := range depth {
		if how == "inside" || how == "mixed" && n%2 == 0 {
			state = &agentv1.ConversationStateStructure{SubagentStates: map[string]*agentv1.SubagentPersistedState{"s": {ConversationState: state}}}
			continue
		}
		b := blob.New(encode())
		check(t, f.blobs.Put(ctx, b))
		state = &agentv1.ConversationStateStructure{SubagentStateRefs: map[string][]byte{"s": b.ID.Bytes(), "again": b.ID.Bytes()}}
	}
	return encode()
}

func TestThirtyTwoSubagentsMayLieInsideEachOther(t *testing.T) {
	ctx := context.Background()
	for _, how := range []string{"inside", "named", "mixed"} {
		for depth, wantErr := range map[int]error{32: nil, 33: conversation.ErrTooDeep} {
			t.Run(fmt.Sprint(how, depth), func(t *testing.T) {
				f, to := newFixture(t), newFixture(t)
				expect := func(what string, err error) {
					t.Helper()
					if !errors.Is(err, wantErr) {
						t.Errorf("%s: %v, want %v", what, err, wantErr)
					}
				}
				root := blob.New(nests(t, f, how, depth))
				check(t, f.blobs.Put(ctx, root))
				c := must(f.Create(ctx, conversation.Info{ID: "c"}))
				err := c.SetStructure(ctx, root.Data)
				if err == nil {
					_, err = c.Save(ctx, nil)
				}
				expect("save", err)
				all, err := f.HydrateRoot(ctx, root.ID, &conversation.HydrateOptions{Subagents: true})
				expect("hydrate", err)
				if err == nil && innermost(t, all) != "innermost" {
					t.Errorf("the innermost subagent says %q", innermost(t, all))
				}
				_, blobs, err := f.Export(ctx, root.ID, nil)
				expect("export", err)
				if err == nil {
					expect("import", to.Import(ctx, root.ID, blobs))
				}
				// The same, had the other side let it through.
				check(t, f.mem.List(ctx, blob.ID{}, func(i blob.Info) error { return to.blobs.Put(ctx, blob.New(must(f.blobs.Get(ctx, i.ID)))) }))
				expect("import", to.Import(ctx, root.ID, func(func(blob.Blob, error) bool) {}))
			})
		}
	}
}

func innermost(t *testing.T, s *conversation.State) string {
	t.Helper()
	for {
		switch {
		case s.Subagents["s"].State != nil:
			s = s.Subagents["s"].State
		case s.SubagentStates["s"] != nil:
			if s.SubagentStates["again"] != s.SubagentStates["s"] {
				t.Error("one root was read twice")
			}
			s = s.SubagentStates["s"]
		default:
			return texts(t, s)[0]
		}
	}
}

// A chain can also grow by one with every save.
func TestAChainOfSubagentsEndsAtTheLimit(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	check(t, c.AppendTurn(ctx, newTurn(t, "first")))
	root := must(c.Save(ctx, nil)).Root
	for n := range 33 {
		check(t, c.SetSubagent(ctx, "s", root))
		s, err := c.Save(ctx, nil)
		if n < 32 {
			check(t, err)
			root = s.Root
		} else if !errors.Is(err, conversation.ErrTooDeep) || !errors.Is(err, conversation.ErrInvalid) {
			t.Errorf("save %d: %v, want ErrTooDeep", n, err)
		}
	}
	// What was taken in by force is found by a check and kept by a collection.
	must(c.Save(ctx, &conversation.SaveOptions{Lenient: true}))
	report := must(f.Check(ctx, nil))
	if len(report.Damage) != 1 || report.Damage[0].Kind != upkeep.DamageMalformed || !errors.Is(report.Damage[0].Err, conversation.ErrTooDeep) {
		t.Errorf("damage %+v", report.Damage)
	}
	before := f.count(t)
	must(f.Collect(ctx, f.mem, noGrace))
	if f.count(t) != before {
		t.Errorf("the collection left %d of %d blobs", f.count(t), before)
	}
}

func TestHydrateSubagentsNamesWhatIsMissing(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	sub := must(f.Create(ctx, conversation.Info{ID: "sub"}))
	f.grow(t, sub, "of the subagent", "and more")
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1", "2")
	check(t, c.SetSubagent(ctx, "s", sub.Head().Root))
	must(c.Save(ctx, nil))
	part := must(f.Hydrate(ctx, "c", &conversation.HydrateOptions{TurnFrom: -1, OnlyTurns: true, Subagents: true}))
	if got := fmt.Sprint(texts(t, part), texts(t, part.SubagentStates["s"])); got != "[2] [of the subagent and more]" {
		t.Errorf("hydrated %s", got)
	}
	if plain := must(f.Hydrate(ctx, "c", nil)); plain.SubagentStates != nil || plain.SubagentRefs["s"] != sub.Head().Root {
		t.Errorf("without the option: %v, %v", plain.SubagentStates, plain.SubagentRefs)
	}
	whole := must(f.Hydrate(ctx, "c", &conversation.HydrateOptions{Subagents: true}))
	check(t, c.SetState(ctx, whole))
	if saved := must(c.Save(ctx, nil)); saved.Root != must(f.Head(ctx, "c")) || saved.Seq != 3 {
		t.Errorf("a state with its subagents at hand was saved as another one: %+v", saved)
	}
	gen := must(f.mem.Begin(ctx))
	must(f.mem.Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return id != sub.Head().Root }}))
	_, err := f.Hydrate(ctx, "c", &conversation.HydrateOptions{Subagents: true})
	var he *conversation.HydrationError
	if !errors.As(err, &he) || he.Source != `subagent_state_refs["s"]` || he.Conversation != "c" {
		t.Errorf("hydrate: %v, want a HydrationError that names the subagent", err)
	}
	if _, _, err := f.Export(ctx, c.Head().Root, nil); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("export: %v, want ErrNotFound", err)
	}
	var missing *kv.MissingBlobsError
	if err := f.Import(ctx, c.Head().Root, func(func(blob.Blob, error) bool) {}); !errors.As(err, &missing) {
		t.Errorf("import: %v, want missing blobs", err)
	}
}
