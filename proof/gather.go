package proof

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// group is everything that belongs to one conversation, or to a workspace but no
// conversation.
type group struct {
	name   string
	leaves []blob.ID
	rows   []kv.Row // only of the group that a proof is about
}

func conversationGroup(id string) string { return "conversation:" + id }
func workspaceGroup(id string) string    { return "workspace:" + id }

// holdings are the groups of a store in the order of their names.
type holdings struct {
	groups []*group
	leaves []blob.ID
}

// gather reads the rows of all groups, and keeps those of the group with the given name.
// conversation is the conversation of that group, if it is one of a conversation.
func gather(ctx context.Context, rows kv.Store, name, conversation string) (*holdings, error) {
	byName := make(map[string]*group)
	add := func(in string, row kv.Row) {
		g := byName[in]
		if g == nil {
			g = &group{name: in}
			byName[in] = g
		}
		g.leaves = append(g.leaves, rowHash(row.Key, row.Value))
		if in == name {
			g.rows = append(g.rows, row)
		}
	}
	// The order of the families is the order of their keys, so rows come to each group
	// in that order.
	for row, err := range rows.Scan(ctx, keyspace.Checkpoints(), kv.ScanOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("read checkpoints: %w", err)
		}
		in, err := groupOf(row)
		if err != nil {
			return nil, err
		}
		add(in, row)
	}
	for _, family := range []kv.Range{keyspace.Conversations(), keyspace.AllSaves()} {
		for row, err := range rows.Scan(ctx, family, kv.ScanOptions{}) {
			if err != nil {
				return nil, fmt.Errorf("read conversations: %w", err)
			}
			// The conversation itself is read by its own range, which also finds it in packs.
			if id := keyspace.Parts(row.Key)[2]; id != conversation {
				add(conversationGroup(id), row)
			}
		}
		if conversation == "" {
			continue
		}
		for row, err := range ownRows(ctx, rows, family, conversation) {
			if err != nil {
				return nil, fmt.Errorf("read conversation %s: %w", conversation, err)
			}
			add(name, row)
		}
	}
	h := &holdings{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		g := byName[name]
		h.groups = append(h.groups, g)
		h.leaves = append(h.leaves, groupHash(name, uint64(len(g.leaves)), rootOf(g.leaves)))
	}
	return h, nil
}

// ownRows yields the rows of a family that belong to a conversation.
func ownRows(ctx context.Context, rows kv.Store, family kv.Range, conversation string) func(func(kv.Row, error) bool) {
	if family == keyspace.AllSaves() {
		return rows.Scan(ctx, keyspace.Saves(conversation), kv.ScanOptions{})
	}
	return func(yield func(kv.Row, error) bool) {
		row, err := rows.Get(ctx, keyspace.Conversation(conversation))
		yield(row, err)
	}
}

// groupOf returns the group that a checkpoint belongs to.
func groupOf(row kv.Row) (string, error) {
	var rec stetv1.CheckpointRecord
	if err := proto.Unmarshal(row.Value, &rec); err != nil {
		return "", fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	if rec.Conversation != "" {
		return conversationGroup(rec.Conversation), nil
	}
	return workspaceGroup(rec.Workspace), nil
}

// entry is an entry of the log of operations.
type entry struct {
	kv.Row
	before, digest blob.ID // the link before it, and what it counts as
	rec            *stetv1.OperationRecord
}

// readLog returns the entries of the log and the link after the last one.
func readLog(ctx context.Context, rows kv.Store) (all []entry, link blob.ID, err error) {
	for row, err := range rows.Scan(ctx, keyspace.Operations(), kv.ScanOptions{}) {
		if err != nil {
			return nil, link, fmt.Errorf("read log of operations: %w", err)
		}
		rec := new(stetv1.OperationRecord)
		if err := proto.Unmarshal(row.Value, rec); err != nil {
			return nil, link, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
		}
		if rec.Seq != uint64(len(all))+1 || keyspace.Operation(rec.Seq) != row.Key {
			return nil, link, fmt.Errorf("%w: row %q: the log of operations has a gap before it", kv.ErrCorrupt, row.Key)
		}
		if len(rec.Chain) > 0 && !bytes.Equal(rec.Chain, link[:]) {
			return nil, link, fmt.Errorf("%w: row %q: an entry of the log of operations before it was changed", kv.ErrCorrupt, row.Key)
		}
		digest := checkpoint.Digest(row.Value, rec.Original)
		all = append(all, entry{Row: row, before: link, digest: digest, rec: rec})
		link = checkpoint.NextLink(link, digest)
	}
	return all, link, nil
}
