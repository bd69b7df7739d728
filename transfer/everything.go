package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// everything moves what belongs to no conversation, after all conversations.
func (m *mover) everything(ctx context.Context) error {
	for _, step := range []struct {
		what string
		move func(context.Context) error
	}{
		{"checkpoints", m.otherCheckpoints}, {"lists of checkpoints", m.lists}, {"agents", m.agents}, {"threads", m.threads}, {"documents", m.documents}, {"streams", m.streams}, {"pins", m.pins},
		{"operations", m.operations}, {"blobs that are held for others", m.kept}, {"rows without a conversation", m.orphans},
	} {
		if err := step.move(ctx); err != nil {
			return fmt.Errorf("move %s: %w", step.what, err)
		}
		m.progress()
	}
	return nil
}

func (m *mover) leave(format string, args ...any) {
	m.report.Left = append(m.report.Left, fmt.Sprintf(format, args...))
}

// otherCheckpoints moves the checkpoints that no conversation brought.
func (m *mover) otherCheckpoints(ctx context.Context) error {
	skip := make(map[string]bool)
	for _, c := range m.report.Conversations {
		skip[c.ID] = c.Status == Diverged || c.Status == Failed
	}
	for row, err := range m.from.Rows.Scan(ctx, keyspace.Checkpoints(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return err
		}
		one, err := m.lookAtAnyCheckpoint(ctx, keyspace.Last(row.Key))
		if err != nil {
			err = fmt.Errorf("checkpoint %s: %w", keyspace.Last(row.Key), err)
			if ctx.Err() != nil || !ofOne(err) {
				return err
			}
			m.leave("checkpoint %s, which is damaged", keyspace.Last(row.Key))
			m.damaged = append(m.damaged, err)
			continue
		}
		if one == nil || skip[one.rec.GetConversation()] {
			continue
		}
		if err := m.send(ctx, one.ids); err != nil {
			return err
		}
		if !m.opts.DryRun {
			if err := m.checkpoint(ctx, *one); err != nil {
				return fmt.Errorf("checkpoint %s: %w", one.rec.GetId(), err)
			}
		}
		m.report.Checkpoints++
	}
	return nil
}

// lists completes the lists of workspaces: checkpoints arrive by conversation, and one
// that arrives after a later one of the same directory is not listed there. If the target
// has checkpoints of its own for a directory, that list stays.
func (m *mover) lists(ctx context.Context) error {
	for row, err := range m.from.Rows.Scan(ctx, keyspace.Workspaces(), kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		if err := m.listOf(ctx, row); err != nil {
			return fmt.Errorf("workspace %s: %w", keyspace.Last(row.Key), err)
		}
	}
	return nil
}

func (m *mover) listOf(ctx context.Context, row kv.Row) error {
	id := keyspace.Last(row.Key)
	here, err := rowsIn(ctx, m.from.Rows, keyspace.WorkspaceCheckpoints(id))
	if err != nil {
		return err
	}
	there, err := rowsIn(ctx, m.to.Rows, keyspace.WorkspaceCheckpoints(id))
	if err != nil || m.opts.DryRun {
		return err
	}
	for key := range there {
		if _, ok := here[key]; !ok {
			m.leave("the list of workspace %s", id)
			return nil
		}
	}
	source, target := new(stetv1.WorkspaceRecord), new(stetv1.WorkspaceRecord)
	if err := decode(row, source); err != nil {
		return err
	}
	old, err := get(ctx, m.to.Rows, row.Key)
	if err != nil {
		return err
	}
	if old.Version == 0 {
		if target, err = m.newWorkspace(row, source.GetCreatedAtMs()); err != nil {
			return err
		}
	} else if err := decode(old, target); err != nil {
		return err
	}
	before := proto.CloneOf(target)
	target.LastNumber, target.LastCheckpoint = source.GetLastNumber(), source.GetLastCheckpoint()
	b := &kv.Batch{}
	for key := range here {
		if _, ok := there[key]; ok {
			continue
		}
		has, err := get(ctx, m.to.Rows, keyspace.Checkpoint(keyspace.Last(key)))
		if err != nil {
			return err
		}
		if has.Version == 0 { // of a conversation that was not moved
			m.leave("the list of workspace %s", id)
			return nil
		}
		b.Set = append(b.Set, kv.Set{Key: key})
	}
	if len(b.Set) == 0 && old.Version != 0 && proto.Equal(before, target) {
		return nil
	}
	value, err := encode(target)
	if err != nil {
		return err
	}
	b.Expect = []kv.Expect{{Key: row.Key, Version: old.Version}}
	b.Set = append(b.Set, kv.Set{Key: row.Key, Value: value})
	return m.commit(ctx, b)
}

// agents moves agents with their logs.
func (m *mover) agents(ctx context.Context) error {
	const suffix = ":cloudAgent:metadata"
	ids := make(map[string]bool)
	for row, err := range m.from.Rows.Scan(ctx, kv.Range{}, kv.ScanOptions{KeysOnly: true}) {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(row.Key, suffix):
			ids[keyspace.Unescape(strings.TrimSuffix(row.Key, suffix))] = true
		case keyspace.Agents().Contains(row.Key):
			ids[keyspace.Last(row.Key)] = true
		}
	}
	for id := range ids {
		if err := m.agent(ctx, id); err != nil {
			return fmt.Errorf("agent %s: %w", id, err)
		}
	}
	return nil
}

// agent moves one agent: first the events that the target lacks, which are not visible
// yet, then its record and metadata together.
func (m *mover) agent(ctx context.Context, id string) error {
	events := keyspace.AgentEvents(id, 0)
	last, err := lastRow(ctx, m.to.Rows, events)
	if err != nil {
		return err
	}
	if last.Key != "" {
		same, err := get(ctx, m.from.Rows, last.Key)
		if err != nil {
			return err
		}
		if !bytes.Equal(same.Value, last.Value) {
			m.leave("agent %s, which was continued there", id)
			return nil
		}
		events.Start = last.Key + "\x00"
	}
	moved, _, err := m.copyRows(ctx, events, false)
	if err != nil {
		return err
	}
	var rows []kv.Row
	for _, key := range []string{keyspace.Agent(id), keyspace.AgentMetadata(id)} {
		here, err := get(ctx, m.from.Rows, key)
		if err != nil {
			return err
		}
		there, err := get(ctx, m.to.Rows, key)
		if err != nil {
			return err
		}
		if here.Version != 0 && !bytes.Equal(here.Value, there.Value) {
			rows = append(rows, kv.Row{Key: key, Value: here.Value, Version: there.Version})
		}
	}
	if err := m.commitRows(ctx, rows); err != nil {
		return err
	}
	if moved+len(rows) > 0 {
		m.report.Agents++
	}
	return nil
}

// threads moves the threads of graphs: writes first, so that no frame is without them.
func (m *mover) threads(ctx context.Context) error {
	return m.rowsThatDiffer(ctx, keyspace.AllFrameWrites(), keyspace.AllFrames())
}

// documents moves the documents of programs.
func (m *mover) documents(ctx context.Context) error {
	return m.rowsThatDiffer(ctx, keyspace.AllDocuments())
}

// rowsThatDiffer moves independent rows. A row that differs at the target is left alone.
func (m *mover) rowsThatDiffer(ctx context.Context, ranges ...kv.Range) error {
	for _, in := range ranges {
		_, left, err := m.copyRows(ctx, in, false)
		if err != nil {
			return err
		}
		for _, key := range left {
			m.leave("%s, which differs there", strings.Join(keyspace.Parts(key)[1:], " "))
		}
	}
	return nil
}

// lastRow returns the last row of a range, or the zero row.
func lastRow(ctx context.Context, from kv.Store, in kv.Range) (last kv.Row, err error) {
	for row, err := range from.Scan(ctx, in, kv.ScanOptions{Reverse: true, Limit: 1}) {
		if err != nil {
			return kv.Row{}, err
		}
		last = row
	}
	return last, nil
}

// pins moves names of saves and checkpoints that the target has too.
func (m *mover) pins(ctx context.Context) error {
	for row, err := range m.from.Rows.Scan(ctx, keyspace.Pins(), kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		if err := m.pin(ctx, row); err != nil {
			return fmt.Errorf("pin %s: %w", keyspace.Last(row.Key), err)
		}
	}
	for pin, err := range checkpoint.New(m.from.Blobs, m.from.Rows, nil).Pins(ctx) {
		if err != nil {
			return err
		}
		if err := m.checkpointPin(ctx, pin); err != nil {
			return fmt.Errorf("pin %s: %w", pin.Name, err)
		}
	}
	return nil
}

// pin moves one name of a save.
func (m *mover) pin(ctx context.Context, row kv.Row) error {
	old, err := get(ctx, m.to.Rows, row.Key)
	if err != nil || bytes.Equal(old.Value, row.Value) {
		return err
	}
	rec := new(stetv1.PinRecord)
	if err := decode(row, rec); err != nil {
		return err
	}
	save := keyspace.Save(rec.GetConversation(), rec.GetSeq())
	here, err := get(ctx, m.from.Rows, save)
	if err != nil {
		return err
	}
	there, err := get(ctx, m.to.Rows, save)
	if err != nil {
		return err
	}
	same := there.Version != 0 && bytes.Equal(here.Value, there.Value) || m.opts.DryRun
	if old.Version != 0 || !same {
		m.leave("pin %s", keyspace.Last(row.Key))
		return nil
	}
	m.report.Pins++
	return m.commitRows(ctx, []kv.Row{{Key: row.Key, Value: row.Value}})
}

// checkpointPin moves one name of a checkpoint. The target may have it in the form of an
// earlier release.
func (m *mover) checkpointPin(ctx context.Context, pin checkpoint.Pin) error {
	if pin.Workspace == "" { // its checkpoint cannot be read
		m.leave("pin %s", pin.Name)
		return nil
	}
	old, err := checkpoint.New(m.to.Blobs, m.to.Rows, nil).PinNamed(ctx, pin.Workspace, pin.Name)
	if err == nil && old.Checkpoint == pin.Checkpoint {
		return nil
	}
	taken := err == nil
	if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		return err
	}
	there, err := get(ctx, m.to.Rows, keyspace.Checkpoint(pin.Checkpoint))
	if err != nil {
		return err
	}
	if taken || there.Version == 0 && !m.opts.DryRun {
		m.leave("pin %s", pin.Name)
		return nil
	}
	row, err := pin.Row()
	if err != nil {
		return err
	}
	m.report.Pins++
	return m.commitRows(ctx, []kv.Row{row})
}

// operations continues the log of the target if it is the beginning of this one. Two
// logs cannot be merged: entries are numbered and refer to each other.
func (m *mover) operations(ctx context.Context) error {
	in := keyspace.Operations()
	last, err := lastRow(ctx, m.to.Rows, in)
	if err != nil {
		return err
	}
	if last.Key != "" {
		same, err := get(ctx, m.from.Rows, last.Key)
		if err != nil {
			return err
		}
		if !bytes.Equal(same.Value, last.Value) {
			m.leave("the log of operations, which was continued there")
			return nil
		}
		in.Start = last.Key + "\x00"
	}
	n, _, err := m.copyRows(ctx, in, false)
	m.report.Operations += n
	return err
}

func (m *mover) kept(ctx context.Context) error {
	_, _, err := m.copyRows(ctx, keyspace.AllKept(), false)
	return err
}

// orphans moves rows of conversations that have no record, as imports may leave them.
func (m *mover) orphans(ctx context.Context) error {
	known := make(map[string]bool)
	for _, c := range m.report.Conversations {
		known[c.ID] = true
	}
	for _, in := range []kv.Range{keyspace.AllMessageHeads(), keyspace.AllJSONCheckpoints()} {
		for {
			row, err := firstKey(ctx, m.from.Rows, in)
			if err != nil {
				return err
			}
			if row == "" {
				break
			}
			id, one := ownerOf(row)
			if !known[id] {
				if _, _, err := m.copyRows(ctx, one, false); err != nil {
					return err
				}
			}
			in.Start = one.End
		}
	}
	return nil
}

func firstKey(ctx context.Context, from kv.Store, in kv.Range) (key string, err error) {
	for row, err := range from.Scan(ctx, in, kv.ScanOptions{KeysOnly: true, Limit: 1}) {
		if err != nil {
			return "", err
		}
		key = row.Key
	}
	return key, nil
}

// ownerOf returns the conversation of a message head or JSON checkpoint, and the rows
// of that kind that it has.
func ownerOf(key string) (conversation string, in kv.Range) {
	parts := keyspace.Parts(key)
	if keyspace.AllJSONCheckpoints().Contains(key) {
		return parts[1], keyspace.JSONCheckpoints(parts[1])
	}
	return parts[2], keyspace.MessageHeads(parts[2])
}
