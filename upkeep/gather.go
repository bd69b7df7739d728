package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/abreast"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/pack"
)

// maxArchived bounds the rows of one conversation that is archived: they are held in
// memory.
const maxArchived = 256 << 20

var errTooManyRows = fmt.Errorf("%w: its rows take more than %d bytes", kv.ErrTooLarge, maxArchived)

// gatherer finds what belongs to a conversation: its rows, as they are stored,
// and the blobs that the collector keeps because of them.
type gatherer struct {
	*Service
	id    string
	since time.Time // later changes mean that it is not idle; zero for no limit

	rows  []kv.Row
	seen  map[string]bool
	bytes int
}

// gather collects everything that belongs to a conversation or agent. It fails with
// ErrNotIdle if that changed after since, unless since is zero.
func (s *Service) gather(ctx context.Context, id string, since time.Time) (pack.Contents, error) {
	g := &gatherer{Service: s, id: id, since: since, seen: make(map[string]bool)}
	if err := g.rowsOf(ctx); err != nil {
		return pack.Contents{}, err
	}
	ids, err := g.blobs(ctx)
	if err != nil {
		return pack.Contents{}, err
	}
	if g.stores.Crypt != nil {
		for i, id := range ids {
			ids[i] = g.stores.Crypt.Name(id)
		}
	}
	return pack.Contents{Rows: g.rows, Blobs: ids}, nil
}

// rowsOf collects the rows. Services determine what belongs together, from what is
// not archived; the rows themselves come from below the layer that seals values.
// Independent reads run at the same time: a database answers them in one round trip.
func (g *gatherer) rowsOf(ctx context.Context) error {
	var info conversation.Info
	var own *owner
	var infoErr, ownErr error
	var work sync.WaitGroup
	work.Go(func() { info, infoErr = conversation.New(g.stores.Blobs, g.stores.Live, nil).Get(ctx, g.id) })
	work.Go(func() { own, ownErr = g.owner(ctx, g.id) })
	listed := keyspace.ConversationCheckpoints(g.id)
	found, err := g.read(ctx,
		only(keyspace.Head(g.id)), keyspace.MessageHeads(g.id), keyspace.Saves(g.id), keyspace.JSONCheckpoints(g.id), keyspace.Execs(g.id), listed)
	work.Wait()
	known := infoErr == nil
	if errors.Is(infoErr, conversation.ErrNotFound) {
		infoErr = nil
	}
	if err := errors.Join(infoErr, ownErr, err); err != nil {
		return err
	}
	if known {
		if err := g.idle(info.Updated); err != nil {
			return err
		}
	}
	for _, rows := range found {
		if err := g.take(rows); err != nil {
			return err
		}
	}
	if err := g.checkpoints(ctx, found[len(found)-1]); err != nil {
		return err
	}
	if known && info.Agent != g.id {
		other, err := g.owner(ctx, info.Agent)
		if err := errors.Join(err, g.agent(ctx, other)); err != nil {
			return err
		}
	}
	return g.agent(ctx, own)
}

// read returns the rows of ranges as they are stored.
func (g *gatherer) read(ctx context.Context, ranges ...kv.Range) ([][]kv.Row, error) {
	return abreast.All(ranges, readsBeside, func(in kv.Range) (rows []kv.Row, err error) {
		size := 0
		for row, err := range g.stores.Bare.Scan(ctx, in, kv.ScanOptions{}) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
			if size += len(row.Key) + len(row.Value); size > maxArchived {
				return nil, errTooManyRows
			}
		}
		return rows, nil
	})
}

// idle fails if something changed too late.
func (g *gatherer) idle(at time.Time) error {
	if !g.since.IsZero() && at.After(g.since) {
		return ErrNotIdle
	}
	return nil
}

// take adds rows.
func (g *gatherer) take(rows []kv.Row) error {
	for _, row := range rows {
		if g.seen[row.Key] {
			continue
		}
		g.seen[row.Key] = true
		g.rows = append(g.rows, row)
		if g.bytes += len(row.Key) + len(row.Value); g.bytes > maxArchived {
			return errTooManyRows
		}
	}
	return nil
}

// add reads ranges and adds their rows.
func (g *gatherer) add(ctx context.Context, ranges ...kv.Range) error {
	found, err := g.read(ctx, ranges...)
	for _, rows := range found {
		if err == nil {
			err = g.take(rows)
		}
	}
	return err
}

// checkpoints takes those that were made in the conversation. One that is listed with
// it but belongs to another stays where it is.
func (g *gatherer) checkpoints(ctx context.Context, listed []kv.Row) error {
	service := checkpoint.New(g.stores.Blobs, g.stores.Live, nil)
	ranges, err := abreast.All(listed, readsBeside, func(row kv.Row) (kv.Range, error) {
		rec, err := service.Get(ctx, keyspace.Last(row.Key))
		switch {
		case errors.Is(err, checkpoint.ErrNotFound):
			return kv.Range{}, nil
		case err != nil:
			return kv.Range{}, err
		case rec.Conversation != g.id:
			return kv.Range{}, nil
		}
		return only(keyspace.Checkpoint(rec.ID)), g.idle(rec.Time)
	})
	if err != nil {
		return err
	}
	return g.add(ctx, slices.DeleteFunc(ranges, func(r kv.Range) bool { return r == kv.Range{} })...)
}

// owner is an agent that works on the conversation.
type owner struct {
	id      string
	updated time.Time
}

// owner returns the agent of an id if it works on the conversation, or nil.
func (g *gatherer) owner(ctx context.Context, id string) (*owner, error) {
	if id == "" || len(id) > 256 {
		return nil, nil // a name and no id
	}
	agent, err := cloudagent.New(g.stores.Blobs, g.stores.Live, nil).Get(ctx, id)
	if errors.Is(err, cloudagent.ErrNotFound) || errors.Is(err, cloudagent.ErrInvalid) {
		return nil, nil
	}
	if err != nil || agent.Conversation != g.id && agent.ID != g.id {
		return nil, err
	}
	return &owner{id, agent.Updated}, nil
}

// agent takes the rows of an agent, if there is one.
func (g *gatherer) agent(ctx context.Context, a *owner) error {
	if a == nil {
		return nil
	}
	before := len(g.rows)
	if err := errors.Join(g.idle(a.updated), g.add(ctx, only(keyspace.Agent(a.id)))); err != nil {
		return err
	}
	if len(g.rows) == before {
		return nil // imported and not changed since: it has no record
	}
	return g.add(ctx, keyspace.AgentEvents(a.id, 0))
}

// blobs walks as the collector does, in a store that has only these rows.
func (g *gatherer) blobs(ctx context.Context) ([]blob.ID, error) {
	copied := memkv.New(nil)
	b := &kv.Batch{}
	for _, row := range g.rows {
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
	}
	if err := copied.Commit(ctx, b); err != nil {
		return nil, err
	}
	held := g.holders(g.stores.Open(copied))
	all := []conversation.Roots{held.Conversations, held.Agents, held.Checkpoints}
	var ids, leaves []blob.ID
	known := make(map[blob.ID]bool)
	err := graph.Walk(ctx, g.stores.Blobs, chain(ctx, all), nil, func(n graph.Node) error {
		if errors.Is(n.Err, blob.ErrCorrupt) {
			return fmt.Errorf("%s is damaged: %w", n.Kind, n.Err)
		}
		if errors.Is(n.Err, blob.ErrNotFound) && n.Kind == graph.State { // a pack would hide that it is lost
			return &conversation.HydrationError{Conversation: g.id, Source: "root " + n.ID.Short(), Err: n.Err}
		}
		if !known[n.ID] && !errors.Is(n.Err, blob.ErrNotFound) {
			known[n.ID] = true
			ids = append(ids, n.ID)
			if n.Kind.Leaf() {
				leaves = append(leaves, n.ID)
			}
		}
		return nil
	})
	if err == nil {
		_, err = abreast.All(leaves, 16, func(id blob.ID) (struct{}, error) { return struct{}{}, g.sound(ctx, id) })
	}
	return ids, err
}

// sound reads a blob that the walk did not. A pack vouches for the bytes that it gets:
// damage would never be found in it.
func (g *gatherer) sound(ctx context.Context, id blob.ID) error {
	r, err := blob.Open(ctx, g.stores.Blobs, id)
	if errors.Is(err, blob.ErrNotFound) {
		return nil // left out, and missed as before
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

// checkPacks adds the damage of packs to a report.
func (s *Service) checkPacks(ctx context.Context, report *Report, data bool) error {
	if s.stores.Packs == nil {
		return nil
	}
	return s.stores.Packs.Check(ctx, data, func(key, id string, err error) error {
		// A changed bit may look like a newer format, so rows that a newer release wrote
		// are reported, too, and the check continues.
		if !isDamage(err) && !errors.Is(err, pack.ErrNewerFormat) {
			return fmt.Errorf("check packs: %w", err)
		}
		d := Damage{Kind: DamageRow, Key: key, Err: err}
		if id != "" {
			d.Conversations = []string{id}
		}
		report.Damage = append(report.Damage, d)
		return nil
	})
}
