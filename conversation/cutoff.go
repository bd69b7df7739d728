package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Cutoff is the time up to which a session of an agent is not copied again, because the
// conversation that was copied from it was removed or a content of it was purged. The
// agent's own record still has all of it. A cutoff stays in the store in which it was set.
type Cutoff struct {
	// Source is the agent that has the session, and Path its record, "" if unknown.
	Source, Path string
	// Until is when the session was cut off. Turns that began earlier are not copied.
	Until time.Time
	// Removed means that the conversation was removed, Purged that a content of it, or of
	// its session's record, was.
	Removed, Purged bool
}

// cutoffFormat is the latest format of cutoffs that this release reads and writes.
const cutoffFormat = 1

// Cutoff returns the cutoff of the session with the id of a conversation, and the version
// of its row. They are zero if there is none.
func (s *Store) Cutoff(ctx context.Context, id string) (Cutoff, uint64, error) {
	row, err := s.rows.Get(ctx, keyspace.Cutoff(id))
	if errors.Is(err, kv.ErrNotFound) {
		return Cutoff{}, 0, nil
	}
	if err != nil {
		return Cutoff{}, 0, fmt.Errorf("read cutoff of %s: %w", id, err)
	}
	c, err := decodeCutoff(row)
	return c, row.Version, err
}

// SessionsCutOff returns the ids of the conversations whose sessions have a cutoff.
func (s *Store) SessionsCutOff(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for row, err := range s.rows.Scan(ctx, keyspace.Cutoffs(), kv.ScanOptions{KeysOnly: true}) {
			if err != nil {
				yield("", fmt.Errorf("list cutoffs: %w", err))
				return
			}
			if !yield(keyspace.Last(row.Key), nil) {
				return
			}
		}
	}
}

// CutOff sets the cutoff of a session, or moves it: the later time counts, and what was
// removed or purged stays so.
func (s *Store) CutOff(ctx context.Context, id string, c Cutoff) error {
	for range attempts {
		b := &kv.Batch{}
		if err := s.cutOff(ctx, id, c, b); err != nil {
			return err
		}
		err := s.rows.Commit(ctx, b)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cut off session %s: %w", id, err)
		}
		return nil
	}
	return fmt.Errorf("cut off session %s: %w", id, kv.ErrConflict)
}

// cutOff adds a cutoff to a batch. One that cannot be read may have said that a content
// was purged.
func (s *Store) cutOff(ctx context.Context, id string, c Cutoff, b *kv.Batch) error {
	have, version, err := s.Cutoff(ctx, id)
	switch {
	case err == nil:
		b.Expect = append(b.Expect, kv.Expect{Key: keyspace.Cutoff(id), Version: version})
	case Damaged(err):
		have.Purged = true
	default:
		return err
	}
	if have.Until.After(c.Until) {
		c.Until = have.Until
	}
	c.Source, c.Path = cmp.Or(c.Source, have.Source), cmp.Or(c.Path, have.Path)
	c.Removed, c.Purged = c.Removed || have.Removed, c.Purged || have.Purged
	b.Set = append(b.Set, c.row(id))
	return nil
}

// cutRemoved adds to the removal of a conversation that its session is cut off, if it was
// copied from one or that is unknown.
func (s *Store) cutRemoved(ctx context.Context, id string, b *kv.Batch) error {
	if checkID("conversation", id) != nil {
		return nil // no session has it
	}
	rec, _, err := s.record(ctx, id)
	if err != nil && !Damaged(err) && !errors.Is(err, ErrNotFound) {
		return err
	}
	labels := rec.GetLabels()
	if err == nil && labels[LabelSource] == "" {
		return nil
	}
	return s.cutOff(ctx, id, Cutoff{Source: labels[LabelSource], Path: labels[LabelPath], Until: s.now(), Removed: true}, b)
}

// row is the number of the format, the time in milliseconds, the letters of what happened,
// the agent and the path.
func (c Cutoff) row(id string) kv.Set {
	what := ""
	if c.Removed {
		what += "r"
	}
	if c.Purged {
		what += "p"
	}
	value := fmt.Sprintf("%d %d %s %s %s", cutoffFormat, max(0, c.Until.UnixMilli()), what, c.Source, c.Path)
	return kv.Set{Key: keyspace.Cutoff(id), Value: []byte(value)}
}

func decodeCutoff(row kv.Row) (Cutoff, error) {
	if _, err := idsOf(row, keyspace.Cutoffs().Start, 1); err != nil {
		return Cutoff{}, err
	}
	first, rest, _ := strings.Cut(string(row.Value), " ")
	format, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return Cutoff{}, corrupt(row, "it is not a cutoff")
	}
	if err := rowformat.Check(row.Key, uint32(format), cutoffFormat); err != nil {
		return Cutoff{}, err
	}
	parts := strings.SplitN(rest, " ", 4)
	if len(parts) != 4 {
		return Cutoff{}, corrupt(row, "it is not a cutoff")
	}
	ms, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || strings.Trim(parts[1], "rp") != "" {
		return Cutoff{}, corrupt(row, "it is not a cutoff")
	}
	return Cutoff{
		Source: parts[2], Path: parts[3], Until: time.UnixMilli(ms),
		Removed: strings.Contains(parts[1], "r"), Purged: strings.Contains(parts[1], "p"),
	}, checkTime(row, ms)
}
