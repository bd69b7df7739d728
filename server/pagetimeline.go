package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

const (
	timelineEntries = 5000 // of a conversation, the newest
	timelineAsks    = 400  // entries that also say what was asked for: each reads a state
)

// unreadable stands for what was asked where that is damaged.
const unreadable = "(cannot be read)"

// quietRecord reports whether a checkpoint says nothing new by itself.
func quietRecord(rec *checkpoint.Record) bool {
	if rec.Kind == checkpoint.Rewound {
		return true
	}
	return rec.FilesChanged == 0 && (rec.Kind == checkpoint.Safety || rec.Side == checkpoint.Before)
}

// Timeline gives the checkpoints of a conversation with what became of them.
func (s *pageService) Timeline(ctx context.Context, req *connect.Request[stetv1.TimelineRequest]) (*connect.Response[stetv1.TimelineResponse], error) {
	id := req.Msg.GetConversation()
	if _, err := s.db.Conversations().Get(ctx, id); err != nil {
		return nil, err
	}
	res := &stetv1.TimelineResponse{}
	var records []*checkpoint.Record // newest first
	for rec, err := range s.db.Checkpoints().ListConversation(ctx, id) {
		if err != nil {
			return nil, err
		}
		if len(records) == timelineEntries {
			res.Truncated = true
			break
		}
		records = append(records, rec)
	}
	gaps, err := s.gaps(ctx, records, !res.Truncated)
	if err != nil {
		return nil, err
	}
	line, err := s.track(ctx, records)
	if err != nil {
		return nil, err
	}
	d, err := (&checkpointService{s.db}).describer(ctx)
	if err != nil {
		return nil, err
	}
	room := maxMessage / 2
	for _, rec := range records {
		out, err := d.checkpoint(ctx, rec)
		if err != nil {
			return nil, err
		}
		e := &stetv1.TimelineEntry{Checkpoint: out, Name: rec.Name(), Current: rec.ID == line.tip, Quiet: quietRecord(rec) && len(out.Pins) == 0 && rec.Parent != ""}
		if at, ok := line.gone[rec.ID]; ok {
			e.Gone, e.GoneMs = true, at.UnixMilli()
		}
		if room -= proto.Size(out); room < 0 {
			res.Truncated = true
			break
		}
		if len(res.Entries) < timelineAsks && !e.Quiet {
			if e.Ask, e.Tools, err = s.ask(ctx, rec.Root, int(rec.Turn)); err != nil {
				return nil, err
			}
		}
		res.Entries = append(res.Entries, e)
		if n := gaps[rec.ID]; n > 0 {
			res.Entries = append(res.Entries, gapEntry(e, n))
		}
	}
	res.Forks, err = s.forks(ctx, id)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

// track follows a conversation through its checkpoints, forwards and back.
type track struct {
	tip    string               // the checkpoint that the workspace continues
	before map[string]string    // which one each continued
	gone   map[string]time.Time // when a rewind left it behind
}

func (s *pageService) track(ctx context.Context, newestFirst []*checkpoint.Record) (*track, error) {
	moves := make(map[string]*checkpoint.Operation) // by the checkpoint after
	for op, err := range s.db.Checkpoints().Operations(ctx) {
		if err != nil {
			return nil, err
		}
		if op.After != "" {
			moves[op.After] = op
		}
	}
	t := &track{before: make(map[string]string), gone: make(map[string]time.Time)}
	var earlier []string
	for _, rec := range slices.Backward(newestFirst) {
		t.step(earlier, rec, moves[rec.ID])
		earlier = append(earlier, rec.ID)
	}
	return t, nil
}

// step moves on to a checkpoint that op made, if op is not nil.
func (t *track) step(earlier []string, rec *checkpoint.Record, op *checkpoint.Operation) {
	t.before[rec.ID] = t.tip
	switch {
	case rec.Kind == checkpoint.Safety:
		return
	case op == nil || op.Target == "" || rec.Kind != checkpoint.Rewound:
		t.tip = rec.ID
		return
	}
	if _, known := t.before[op.Target]; !known { // forgotten: what stood before it still does
		t.before[op.Target] = t.standing(earlier, op.Target)
	}
	t.before[rec.ID], t.tip = op.Target, op.Target
	on := make(map[string]bool)
	for id := op.Target; id != "" && !on[id]; id = t.before[id] {
		on[id] = true
	}
	for _, id := range earlier {
		_, gone := t.gone[id]
		switch {
		case on[id]:
			delete(t.gone, id)
		case !gone:
			t.gone[id] = rec.Time
		}
	}
}

// standing returns the newest checkpoint before an id that no rewind left behind.
func (t *track) standing(earlier []string, id string) string {
	for _, e := range slices.Backward(earlier) {
		if _, gone := t.gone[e]; !gone && e < id {
			return e
		}
	}
	return ""
}

// ask says what was asked for in a turn, counted from 1, and with which tools it
// was done. A state that cannot be read is no reason to show nothing.
func (s *pageService) ask(ctx context.Context, root blob.ID, number int) (text, tools string, err error) {
	if root.IsZero() || number < 1 {
		return "", "", nil
	}
	state, err := s.db.Conversations().HydrateRoot(ctx, root, &conversation.HydrateOptions{
		TurnFrom: number - 1, TurnTo: number, OnlyTurns: true, WithoutHeavyToolOutput: true,
	})
	if errors.Is(err, conversation.ErrDataLoss) {
		return unreadable, "", nil
	}
	if err != nil || len(state.Turns) == 0 {
		return "", "", err
	}
	turn := state.Turns[0]
	if turn.ShellCommand.Loaded() {
		command, err := turn.ShellCommand.Decode()
		if err != nil {
			return unreadable, "", nil
		}
		return clipped("$ "+command.GetCommand(), 200), "", nil
	}
	if turn.UserMessage.Loaded() {
		message, err := turn.UserMessage.Decode()
		if err != nil {
			return unreadable, "", nil
		}
		text = message.GetText()
	}
	used := make(map[string]int)
	for _, item := range turn.Steps {
		if !item.Loaded() {
			continue
		}
		step, err := item.Decode()
		if err != nil {
			continue
		}
		if name := callName(step.GetToolCall()); name != "" {
			used[name]++
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, used[name]))
	}
	return clipped(text, 200), strings.Join(parts, " · "), nil
}

// callName returns the short name of the tool that a call is for.
func callName(call *agentv1.ToolCall) string {
	if call == nil {
		return ""
	}
	m := call.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool"))
	if field == nil {
		return "tool"
	}
	name := strings.TrimSuffix(string(field.Name()), "_tool_call")
	if name == "task" {
		return "subagent"
	}
	return strings.ReplaceAll(name, "_", " ")
}

func clipped(s string, n int) string {
	s = valid(s)
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// forks lists the conversations that continue this one elsewhere.
func (s *pageService) forks(ctx context.Context, id string) ([]*stetv1.TimelineFork, error) {
	var out []*stetv1.TimelineFork
	opts := &conversation.ListOptions{Limit: 500}
	for range 20 { // pages: who has more conversations than that sees the newest forks
		page, err := s.db.Conversations().List(ctx, opts)
		if err != nil {
			return nil, err
		}
		for _, info := range page.Conversations {
			if info.ForkedFrom == id {
				out = append(out, &stetv1.TimelineFork{Id: info.ID, Title: info.Title, Turns: uint32(info.Turns), CreatedMs: info.Created.UnixMilli()})
			}
		}
		if page.Next == "" {
			break
		}
		opts.Cursor = page.Next
	}
	return out, nil
}
