package page

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/timeline"
)

const (
	timelineEntries = 5000 // of a conversation, the newest
	timelineAsks    = 400  // entries with their prompt: each reads a state
	askText         = 200  // characters of a prompt
)

// unreadable replaces a damaged prompt.
const unreadable = "(cannot be read)"

// kindForgotten is the kind of an entry for checkpoints that are no longer kept. It
// comes after the entry that they preceded.
const kindForgotten = "forgotten"

// Timeline returns the checkpoints of a conversation and their states.
func (s *Service) Timeline(ctx context.Context, req *stetv1.TimelineRequest) (*stetv1.TimelineResponse, error) {
	id := req.GetConversation()
	if _, err := s.db.Conversations().Get(ctx, id); err != nil {
		return nil, err
	}
	reader := timeline.New(s.db.Checkpoints(), s.db.Conversations())
	history, err := reader.Read(ctx, timeline.Scope{Conversation: id, Limit: timelineEntries})
	if err != nil {
		return nil, err
	}
	res := &stetv1.TimelineResponse{Truncated: history.Truncated}
	for _, bad := range history.Damaged {
		res.Damaged = append(res.Damaged, &stetv1.Unreadable{Id: wire.Valid(bad.ID), Detail: wire.Valid(bad.Error())})
	}
	describe, err := s.describer(ctx)
	if err != nil {
		return nil, err
	}
	room := wire.MaxMessage / 2
	for i, e := range history.Entries {
		out, err := timelineEntry(ctx, history, describe, e, i < timelineAsks)
		if err != nil {
			return nil, err
		}
		if room -= proto.Size(out); room < 0 {
			res.Truncated = true
			break
		}
		res.Entries = append(res.Entries, out)
		if e.Forgotten > 0 {
			res.Entries = append(res.Entries, gapEntry(out, e.Forgotten))
		}
	}
	spent, err := reader.Spent(ctx, id)
	if err != nil {
		return nil, err
	}
	res.Spent = Spent(spent)
	related, err := reader.Related(ctx, id)
	if err != nil {
		return nil, err
	}
	res.Forks, res.Subagents = wireRelated(related.Forks), wireRelated(related.Subagents)
	return res, nil
}

func wireRelated(infos []conversation.Info) []*stetv1.TimelineFork {
	var out []*stetv1.TimelineFork
	for _, info := range infos {
		out = append(out, &stetv1.TimelineFork{Id: info.ID, Title: info.Title, Turns: uint32(info.Turns), CreatedMs: info.Created.UnixMilli()})
	}
	return out
}

// timelineEntry describes an entry, and its turn if requested.
func timelineEntry(ctx context.Context, history *timeline.History, describe Describe, e *timeline.Entry, asks bool) (*stetv1.TimelineEntry, error) {
	rec, err := describe(ctx, e.Record)
	if err != nil {
		return nil, err
	}
	rec.Pins = e.Pins
	out := &stetv1.TimelineEntry{
		Checkpoint: rec, Name: e.Record.Name(), Gone: e.Left, Quiet: e.Quiet, Current: e.Current,
		Continues: e.Continues, Branch: uint32(e.Branch), Operation: e.Operation,
	}
	if e.Left {
		out.GoneMs = e.LeftAt.UnixMilli()
	}
	if t := e.Total; t != nil {
		out.TurnTotal = &stetv1.TurnTotal{
			Files: uint32(t.Files), Added: uint32(t.Added), Removed: uint32(t.Removed), Partial: t.Partial, Checkpoints: uint32(len(t.Checkpoints)),
		}
	}
	if !asks || e.Quiet {
		return out, nil
	}
	turn, err := history.Turn(ctx, e)
	if err != nil {
		return nil, err
	}
	out.Ask, out.Tools = clipped(turn.Text(), askText), strings.Join(turn.ToolWords(), " · ")
	if turn.Damaged {
		out.Ask = unreadable
	}
	if t := out.GetTurnTotal(); t != nil {
		t.DurationMs, t.ContextTokens, t.ContextLimit = turn.Duration.Milliseconds(), turn.ContextTokens, turn.ContextLimit
		t.Spent, t.Interrupted = Spent(turn.Spent), turn.Interrupted
	}
	return out, nil
}

// Spent encodes the cost of turns, nil if nothing is known.
func Spent(s timeline.Spent) *stetv1.Spent {
	if s.IsZero() {
		return nil
	}
	return &stetv1.Spent{
		Model: wire.Valid(s.Model), InputTokens: s.Input, OutputTokens: s.Output, CacheReadTokens: s.CacheRead, CacheWriteTokens: s.CacheWrite,
		ReasoningTokens: s.Reasoning, CostUsd: s.CostUSD, DurationMs: s.Duration.Milliseconds(),
	}
}

// gapEntry reports that n checkpoints before an entry are gone.
func gapEntry(e *stetv1.TimelineEntry, n uint64) *stetv1.TimelineEntry {
	c := e.GetCheckpoint()
	text := "1 checkpoint no longer kept"
	if n > 1 {
		text = fmt.Sprintf("%d checkpoints no longer kept", n)
	}
	return &stetv1.TimelineEntry{
		Checkpoint: &stetv1.Checkpoint{Id: kindForgotten + "-" + c.GetId(), Kind: kindForgotten, TimeMs: c.GetTimeMs(), Workspace: c.GetWorkspace(), Label: text},
		Gone:       e.GetGone(), GoneMs: e.GetGoneMs(), Branch: e.GetBranch(),
	}
}

func clipped(s string, n int) string {
	s = wire.Valid(s)
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
