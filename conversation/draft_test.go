package conversation

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

func parse(t interface {
	Helper()
	Fatal(...any)
}, raw []byte) *agentv1.ConversationStateStructure {
	t.Helper()
	s := new(agentv1.ConversationStateStructure)
	if err := proto.Unmarshal(raw, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// A draft that is loaded from any root says the same, and once laid out goes on
// from its own bytes.
func FuzzDraftSaysTheSame(f *testing.F) {
	id := make([]byte, 32)
	for _, s := range []*agentv1.ConversationStateStructure{
		{},
		{Turns: [][]byte{id, id}, Todos: [][]byte{id}, ReadPaths: []string{"a", "b"}},
		{Turns: [][]byte{id}, TurnTimings: []*agentv1.StepTiming{{DurationMs: 1}}, FileStates: map[string][]byte{"a": id, "b": nil}},
		{SubagentStates: map[string]*agentv1.SubagentPersistedState{"s": {ModelId: proto.String("m")}}, Mode: agentv1.AgentMode_AGENT_MODE_ASK.Enum()},
	} {
		raw, err := marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want agentv1.ConversationStateStructure
		if checkRoot(raw) != nil || proto.Unmarshal(raw, &want) != nil {
			return
		}
		first := blob.New(raw)
		d, err := loadDraft(first.ID, raw)
		if err != nil {
			t.Fatal(err)
		}
		blobs := memblob.New()
		if err := blobs.Put(context.Background(), first); err != nil {
			t.Fatal(err)
		}
		second, err := blob.Whole(context.Background(), blobs, d.blob())
		if err != nil {
			t.Fatal(err)
		}
		if blob.Sum(second.Data) != second.ID {
			t.Fatal("the draft's id is not that of its bytes")
		}
		if !proto.Equal(parse(t, second.Data), &want) {
			t.Fatalf("laid out as\n%v, want\n%v", parse(t, second.Data), &want)
		}
		again, err := loadDraft(second.ID, second.Data)
		if err != nil {
			t.Fatal(err)
		}
		if b := again.blob(); b.ID != second.ID {
			t.Fatal("our own layout changes when it is loaded")
		}
	})
}

// Drafts are compared with a structure that is changed in the plain way.
func TestDraftAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		blobs := memblob.New()
		model := &agentv1.ConversationStateStructure{FileStatesV2: map[string]*agentv1.FileStateStructure{}}
		d := newDraft(blob.NewBuilder())
		value := func() []byte { return blob.Sum(fmt.Append(nil, rapid.IntRange(0, 9).Draw(rt, "value"))).Bytes() }
		var last blob.ID
		commit := func() {
			b := d.blob()
			if err := blob.Checked(blobs).Put(ctx, b); err != nil {
				rt.Fatal(err)
			}
			d.stored(b)
			last = b.ID
			raw, err := blobs.Get(ctx, b.ID)
			if err != nil || blob.Sum(raw) != b.ID {
				rt.Fatalf("stored root: %v", err)
			}
			if !proto.Equal(parse(rt, raw), model) {
				rt.Fatalf("root says\n%v, want\n%v", parse(rt, raw), model)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"turn": func(*rapid.T) {
				v := value()
				model.Turns = append(model.Turns, v)
				d.add(fieldTurns, bytesRecord(fieldTurns, v))
			},
			"last turn": func(*rapid.T) {
				if n := len(model.Turns); n > 0 {
					v := value()
					model.Turns[n-1] = v
					d.hold(fieldTurns, bytesRecord(fieldTurns, v))
				}
			},
			"prompt": func(*rapid.T) {
				v := value()
				model.RootPromptMessagesJson = append(model.RootPromptMessagesJson, v)
				d.add(fieldPrompt, bytesRecord(fieldPrompt, v))
			},
			"summary": func(*rapid.T) {
				v := value()
				model.Summary = v
				d.set(fieldSummary, bytesRecord(fieldSummary, v))
			},
			"file": func(*rapid.T) {
				path, f := fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "path")), &agentv1.FileStateStructure{Content: value()}
				model.FileStatesV2[path] = f
				raw, _ := marshal(f)
				d.put(fieldFiles, path, entryRecord(fieldFiles, path, raw))
			},
			"save": func(*rapid.T) { commit() },
			"reload": func(*rapid.T) {
				commit()
				raw, _ := blobs.Get(ctx, last)
				var err error
				if d, err = loadDraft(last, raw); err != nil {
					rt.Fatal(err)
				}
			},
			"replace": func(*rapid.T) {
				if rapid.Bool().Draw(rt, "shorter") && len(model.Turns) > 1 {
					model.Turns = model.Turns[:len(model.Turns)-1]
				} else {
					model.Turns = append(model.Turns, value())
				}
				raw, _ := marshal(model)
				records, err := splitRoot(raw)
				if err != nil {
					rt.Fatal(err)
				}
				if d, err = d.replace(last, records); err != nil {
					rt.Fatal(err)
				}
			},
		})
		commit()
	})
}

func TestOverwrittenFilesDoNotPileUp(t *testing.T) {
	ctx := context.Background()
	c := newTestConversation(t)
	for n := range 3000 {
		if err := c.SetFile(ctx, "hot.go", File{Content: NewContent(fmt.Append(nil, n))}); err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			if _, err := c.Save(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	saved, err := c.Save(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.store.blobs.Get(ctx, saved.Root)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 2*minDead {
		t.Errorf("a root with one file has %d bytes", len(raw))
	}
	if err := c.RemoveFile(ctx, "hot.go"); err != nil {
		t.Fatal(err)
	}
	if saved, err = c.Save(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if raw, err = c.store.blobs.Get(ctx, saved.Root); err != nil || len(raw) != 0 {
		t.Errorf("without its only file the root has %d bytes, %v", len(raw), err)
	}
}

// A foreign root is written whole once; then roots extend each other.
func TestForeignRootIsLaidOutOnce(t *testing.T) {
	ctx := context.Background()
	c := newTestConversation(t)
	s := &agentv1.ConversationStateStructure{Todos: nil, Mode: agentv1.AgentMode_AGENT_MODE_ASK.Enum(), SelfSummaryCount: 3}
	for n := range 500 {
		turn, err := NewTurn(&agentv1.UserMessage{Text: fmt.Sprint(n)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AppendTurn(ctx, turn); err != nil {
			t.Fatal(err)
		}
		s.Turns = append(s.Turns, turn.Structure.bytes32())
		s.PendingToolCalls = []string{"x"}
		s.ReadPaths = append(s.ReadPaths, fmt.Sprint(n))
	}
	if _, err := c.Save(ctx, nil); err != nil {
		t.Fatal(err)
	}
	raw, _ := proto.Marshal(s) // pending_tool_calls come before turns
	root := blob.New(raw)
	if err := c.store.blobs.Put(ctx, root); err != nil {
		t.Fatal(err)
	}
	if err := c.SetRoot(ctx, root.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(ctx, nil); err != nil {
		t.Fatal(err)
	}
	sizes := make([]int, 3)
	for i := range sizes {
		turn, _ := NewTurn(&agentv1.UserMessage{Text: "next"})
		if err := c.AppendTurn(ctx, turn); err != nil {
			t.Fatal(err)
		}
		sizes[i] = len(c.draft.blob().Data)
		if _, err := c.Save(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if sizes[0] < 500*34 || sizes[1] > 200 || sizes[2] > 200 {
		t.Errorf("roots carry %v bytes of their own, want one whole and then little", sizes)
	}
}
