package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/abreast"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/stream"
)

// relation says which other rows must exist because of a row of a kind. Rows that
// belong together are written and removed in one commit, so if one is missing, it was
// lost. docs/FORMAT.md has the table.
type relation struct {
	rows kv.Range
	// of returns the keys that must exist. Relations that follow from keys alone also
	// hold if a value cannot be read.
	of func(key string) []string
	// read, if set, reads the row: what its value names must exist, too.
	read func(row kv.Row) ([]string, error)
}

// relations lists them by kind of row.
func relations() []relation {
	conversationOf := func(key string) []string { return []string{keyspace.Conversation(keyspace.Parts(key)[2])} }
	return []relation{
		{rows: keyspace.AllSaves(), of: conversationOf},
		{rows: keyspace.Heads(), of: conversationOf},
		{rows: keyspace.AllMessageHeads(), of: conversationOf},
		{rows: keyspace.AllJSONCheckpoints(), of: func(key string) []string { return []string{keyspace.Conversation(keyspace.Parts(key)[1])} }},
		{rows: keyspace.ByTimes(), of: func(key string) []string { return []string{keyspace.Conversation(keyspace.Last(key))} }},
		{rows: keyspace.AllConversationsOf(), of: func(key string) []string { return []string{keyspace.Conversation(keyspace.Last(key))} }},
		{rows: keyspace.Pins(), read: func(row kv.Row) ([]string, error) {
			pin, err := conversation.DecodePin(row)
			return []string{keyspace.Save(pin.Conversation, pin.Seq)}, err
		}},
		{rows: keyspace.AllWorkspaceCheckpoints(), of: func(key string) []string {
			return []string{keyspace.Checkpoint(keyspace.Last(key)), keyspace.Workspace(keyspace.Parts(key)[2])}
		}},
		{rows: keyspace.AllConversationCheckpoints(), of: func(key string) []string { return []string{keyspace.Checkpoint(keyspace.Last(key))} }},
		{rows: keyspace.CheckpointPins(), read: func(row kv.Row) ([]string, error) {
			pin, err := checkpoint.DecodePin(row)
			return []string{keyspace.Checkpoint(pin.Checkpoint)}, err
		}},
		{rows: keyspace.Journals(), of: func(key string) []string { return []string{keyspace.Workspace(keyspace.Last(key))} }},
		{rows: keyspace.Operations(), of: func(key string) []string {
			if n, err := keyspace.ParseNumber(keyspace.Last(key)); err == nil && n > 1 {
				return []string{keyspace.Operation(n - 1)}
			}
			return nil
		}},
		{rows: keyspace.AllAgentEvents(), of: func(key string) []string {
			parts := keyspace.Parts(key)
			needs := []string{keyspace.Agent(parts[2])}
			if n, err := keyspace.ParseNumber(keyspace.Last(key)); err == nil && n > 1 {
				needs = append(needs, keyspace.AgentEvent(parts[2], n-1))
			}
			return needs
		}},
		{rows: keyspace.Agents(), read: func(row kv.Row) ([]string, error) {
			agent, err := cloudagent.DecodeAgent(row)
			if err != nil {
				return nil, err
			}
			var needs []string
			if agent.Head.Seq > 0 { // each event needs the one before
				needs = append(needs, keyspace.AgentEvent(agent.ID, agent.Head.Seq))
			}
			if !agent.State.IsZero() {
				needs = append(needs, keyspace.AgentMetadata(agent.ID))
			}
			return needs, nil
		}},
		{rows: keyspace.Streams(), read: stream.Needs},
		{rows: keyspace.AllStreamAppends(), read: stream.Needs},
	}
}

// neededRows are the kinds of rows that many others need.
func neededRows() []kv.Range {
	return []kv.Range{
		keyspace.Conversations(), keyspace.ByTimes(), keyspace.AllConversationsOf(), keyspace.Checkpoints(), keyspace.Workspaces(), keyspace.Agents(),
	}
}

// checkRelations finds rows whose counterparts are missing, in both directions.
// Package conversation compares heads and places in the list of conversations. Rows
// that the check has already seen are not looked up again.
func (s *Service) checkRelations(ctx context.Context, there *keySet) ([]Damage, error) {
	checks := []func(*related) error{}
	for _, rel := range relations() {
		checks = append(checks, func(r *related) error { return r.check(ctx, rel) })
	}
	checks = append(checks, func(r *related) error { return r.checkpoints(ctx) })
	found, err := abreast.All(checks, scansBeside, func(check func(*related) error) ([]Damage, error) {
		r := &related{rows: s.stores.Rows, there: there}
		err := check(r)
		return r.damage, err
	})
	if err != nil {
		return nil, fmt.Errorf("check relations: %w", err)
	}
	return slices.Concat(found...), nil
}

type related struct {
	rows   kv.Store
	there  *keySet
	damage []Damage
}

// needed is a row, and another one that must exist because of it.
type needed struct{ of, key string }

// maxNeeded is how many are looked up together.
const maxNeeded = 512

// check looks at all rows of a kind.
func (r *related) check(ctx context.Context, rel relation) error {
	var waiting []needed
	all := kv.Each(ctx, r.rows, rel.rows, false)
	if rel.read == nil {
		all = r.rows.Scan(ctx, rel.rows, kv.ScanOptions{KeysOnly: true})
	}
	for row, err := range all {
		if err != nil && row.Key == "" {
			return err
		}
		var needs []string
		if rel.of != nil {
			needs = rel.of(row.Key)
		}
		if rel.read != nil && err == nil { // what cannot be read is reported as such
			if more, err := rel.read(row); err == nil {
				needs = append(needs, more...)
			}
		}
		for _, key := range needs {
			if n := len(waiting); !r.there.has(key) && (n == 0 || waiting[n-1].key != key) { // neighbours often need the same
				waiting = append(waiting, needed{row.Key, key})
			}
		}
		if len(waiting) >= maxNeeded {
			if err := r.lookUp(ctx, waiting); err != nil {
				return err
			}
			waiting = waiting[:0]
		}
	}
	return r.lookUp(ctx, waiting)
}

// lookUp looks up rows together, and looks again for those that it does not find.
func (r *related) lookUp(ctx context.Context, all []needed) error {
	found, err := abreast.All(all, readsBeside, func(n needed) (bool, error) { return r.has(ctx, n.key) })
	for i, n := range all {
		if err == nil && !found[i] {
			err = r.need(ctx, n.of, n.key)
		}
	}
	return err
}

// need reports a row whose counterpart is missing.
func (r *related) need(ctx context.Context, of, key string) error {
	found, err := r.has(ctx, key)
	if err != nil || found {
		return err
	}
	// Both may have been removed or changed between the two looks.
	if still, err := r.has(ctx, of); err != nil || !still {
		return err
	}
	if found, err = r.has(ctx, key); err != nil || found {
		return err
	}
	r.damage = append(r.damage, Damage{
		Kind: DamageDangling, Key: of, Conversations: conversationOf(of), Err: fmt.Errorf("row %q is missing", key),
	})
	return nil
}

// has reports whether a row exists, even if it cannot be read.
func (r *related) has(ctx context.Context, key string) (bool, error) {
	_, err := r.rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err == nil || isDamage(err) {
		return true, nil
	}
	return false, err
}

// checkpoints checks that each checkpoint is in the lists that it belongs to.
//
// It must be in the list of its conversation. It must be in the list of its directory
// unless it came from another store and its number is taken here; so it counts as
// missing there if the list continues after it, or should end with it, and has no
// other one with its number. One that is known to come from another store counts as
// missing only if the list should end with it: retention may have removed the one
// that had its number.
func (r *related) checkpoints(ctx context.Context) error {
	type place struct {
		workspace string
		number    uint64
	}
	numbers, followed, ends := make(map[place]bool), make(map[string]bool), make(map[string]bool)
	var records []*checkpoint.Record
	for row, err := range kv.Each(ctx, r.rows, keyspace.Checkpoints(), false) {
		if err != nil {
			if row.Key == "" {
				return err
			}
			continue
		}
		rec, err := checkpoint.DecodeRecord(row)
		if err != nil {
			continue
		}
		records = append(records, rec)
		if rec.Conversation != "" {
			if err := r.need(ctx, row.Key, keyspace.ConversationCheckpoint(rec.Conversation, rec.ID)); err != nil {
				return err
			}
		}
		listed, err := r.has(ctx, keyspace.WorkspaceCheckpoint(rec.Workspace, rec.ID))
		if err != nil {
			return err
		}
		if listed {
			numbers[place{rec.Workspace, rec.Number}], followed[rec.Parent] = true, true
		}
	}
	for row, err := range kv.Each(ctx, r.rows, keyspace.Workspaces(), false) {
		if err != nil && row.Key == "" {
			return err
		}
		if err == nil {
			if last, err := checkpoint.LastOf(row); err == nil {
				ends[last] = true
			}
		}
	}
	for _, rec := range records {
		expected := ends[rec.ID] || followed[rec.ID] && !rec.Received
		if expected && !numbers[place{rec.Workspace, rec.Number}] {
			if err := r.need(ctx, keyspace.Checkpoint(rec.ID), keyspace.WorkspaceCheckpoint(rec.Workspace, rec.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}
