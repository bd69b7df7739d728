package intake

import (
	"context"
	"io"
	"iter"

	"github.com/stet-dev/stet/foreign"
)

// Count returns what Sessions would do with many sessions and an empty store. It reads
// them as Sessions does, and keeps nothing.
func Count(ctx context.Context, a foreign.Adapter, all iter.Seq2[foreign.Session, error], progress func(Totals)) (Totals, error) {
	c := counter{adapter: a, seen: map[string]bool{}}
	for s, err := range all {
		if progress != nil {
			progress(c.Totals)
		}
		if err == nil {
			err = c.session(ctx, s)
		} else if foreign.Unreadable(err) {
			c.damaged("", err)
			continue
		}
		if err != nil {
			return c.Totals, err
		}
	}
	return c.Totals, ctx.Err()
}

type counter struct {
	Totals
	adapter foreign.Adapter
	seen    map[string]bool // sessions with turns
}

func (c *counter) damaged(session string, err error) {
	c.Skipped = append(c.Skipped, Skipped{Session: session, Reason: err.Error(), Damage: true})
}

func (c *counter) session(ctx context.Context, s foreign.Session) error {
	turns, any, err := c.turns(ctx, s)
	if err != nil {
		return err
	}
	c.Sessions++
	c.Read += s.Size
	if !any {
		c.Skipped = append(c.Skipped, Skipped{Session: s.ID, Reason: skippedEmpty})
		return nil
	}
	c.seen[s.ID] = true
	c.Conversations++
	c.Turns += turns
	for f, err := range c.adapter.Files(ctx, s) {
		var n int64
		if err == nil {
			n, err = length(f)
		}
		if c.Stored += n; err == nil {
			continue
		}
		if !foreign.Unreadable(err) {
			return err
		}
		c.damaged(s.ID, err)
	}
	return nil
}

// turns counts the turns of a session, without those that a fork shares with its origin.
func (c *counter) turns(ctx context.Context, s foreign.Session) (n int, any bool, err error) {
	ids := map[string]bool{}
	for t, err := range c.adapter.Turns(ctx, s, "") {
		switch {
		case foreign.Unreadable(err):
			c.damaged(s.ID, err)
		case err != nil:
			return n, any, err
		case !ids[t.ID]:
			ids[t.ID], any = true, true
			if n++; t.ID == s.ForkedAfter && c.seen[s.ForkedFrom] {
				n = 0
			}
		}
	}
	return n, any, nil
}

// length returns the size of a part of a record.
func length(f foreign.File) (int64, error) {
	src, size, err := open(f)
	if err != nil {
		return 0, unreadable(err)
	}
	defer src.Close()
	if size != unknownSize {
		return size, nil
	}
	n, err := io.Copy(io.Discard, io.NewSectionReader(src, 0, unknownSize))
	if err != nil && !foreign.Unreadable(err) {
		err = unreadable(err)
	}
	return n, err
}
