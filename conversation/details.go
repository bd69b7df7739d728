package conversation

import (
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// TurnDetails holds what the record of an agent says about a turn besides its content.
// Fields that the record does not have are zero.
type TurnDetails struct {
	// Model is the last model that answered.
	Model          string
	Started, Ended time.Time
	// Input counts tokens that were read and not found in a cache.
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	// CostUSD is nil if the record does not have it.
	CostUSD     *float64
	Interrupted bool
	// Automatic means that the agent's program wrote the prompt, not a person.
	Automatic bool
	// Done means that the record shows the end of the turn.
	Done bool
	// Cut is what the agent needs to continue its own conversation after this turn.
	Cut string
	// Mark is where a reader of the agent's record continues.
	Mark string
}

func (t *TurnDetails) record() *stetv1.TurnDetails {
	if t == nil {
		return nil
	}
	return &stetv1.TurnDetails{
		Model: t.Model, StartedAtMs: millis(t.Started), EndedAtMs: millis(t.Ended),
		InputTokens: t.Input, OutputTokens: t.Output, CacheReadTokens: t.CacheRead, CacheWriteTokens: t.CacheWrite,
		ReasoningTokens: t.Reasoning, CostUsd: t.CostUSD, Interrupted: t.Interrupted, Automatic: t.Automatic,
		Done: t.Done, Cut: t.Cut, Mark: t.Mark,
	}
}

func turnDetails(r *stetv1.TurnDetails) *TurnDetails {
	if r == nil {
		return nil
	}
	return &TurnDetails{
		Model: r.Model, Started: timeOf(r.StartedAtMs), Ended: timeOf(r.EndedAtMs),
		Input: r.InputTokens, Output: r.OutputTokens, CacheRead: r.CacheReadTokens, CacheWrite: r.CacheWriteTokens,
		Reasoning: r.ReasoningTokens, CostUSD: r.CostUsd, Interrupted: r.Interrupted, Automatic: r.Automatic,
		Done: r.Done, Cut: r.Cut, Mark: r.Mark,
	}
}

// forFork returns the details for the first save of a fork, without Mark: the record of
// another session does not continue at a mark of this one.
func (t *TurnDetails) forFork() *TurnDetails {
	if t == nil {
		return nil
	}
	out := *t
	out.Mark = ""
	return &out
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
