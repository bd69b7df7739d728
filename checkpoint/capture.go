package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Request describes a checkpoint. The zero value is a plain one that belongs to no
// conversation.
type Request struct {
	// Conversation, Root, MessageID, Turn and Side place the checkpoint in a
	// conversation. What changes between a checkpoint before a turn and one after
	// it counts as written by the conversation. A turn that has no checkpoint after
	// it ends with its Holder.
	Conversation string
	Root         blob.ID
	MessageID    string
	Turn         uint64
	Side         Side
	// Author, Label and Tool are stored unchanged.
	Author, Label, Tool string
	// Touched lists paths, relative to the workspace, that the tool wrote: they are
	// captured even if an ignore file excludes them, and identify the author if
	// several conversations are active.
	Touched []string
	// Shared lists paths that the tool wrote and that something else changed after it.
	// They are captured like those of Touched, but their author stays unknown if another
	// turn is at work, even if that turn lists them as touched.
	Shared []string
	// Paths, if not nil, limits the scan to these paths: everything else counts as
	// unchanged.
	Paths []string
	// Holder makes the turn's checkpoints and keeps it open. Pass the same one for all
	// checkpoints of a turn; its processes are taken from the first.
	Holder Holder
	// Unfinished means that the turn continues although the checkpoint is on its
	// after side.
	Unfinished bool
	// Beside, if not nil, is called after the scan and returns conversations that may
	// have written since the last checkpoint without a turn that a checkpoint began. A
	// change that one of them could have made is attributed to several.
	Beside func(context.Context) ([]string, error)
	// State, if not nil, is called after the scan and returns the state to use instead
	// of Root: a caller that saves its turn only if something changed need not scan
	// beforehand.
	State func(context.Context, Seen) (blob.ID, error)
	// Choose, if not nil, is called before the scan, with the turns at work, and returns
	// the place to use instead of Conversation, Root and Turn. No other checkpoint of the
	// workspace is made meanwhile, so two turns that begin at the same moment do not choose
	// the same place.
	Choose func(ctx context.Context, atWork Turns) (Place, error)
	// IfChanged makes a checkpoint only if the files differ from the last one.
	IfChanged bool
	// Auto marks an automatic checkpoint.
	Auto bool
	// Progress is called from time to time during a long scan.
	Progress func(workspace.Stats)

	share workspace.Share // to be read again
}

// Seen is what the scan of a checkpoint found.
type Seen struct {
	Tree blob.ID
	// IgnoredChanged is as in Result.
	IgnoredChanged []string
}

// Reasons why a request made no checkpoint.
const (
	SkippedUnchanged = "nothing changed since the last checkpoint"
	SkippedOff       = "capture is switched off"
	SkippedThrottled = "too soon after the last automatic checkpoint"
)

// Result is the result of a request.
type Result struct {
	// Record is the checkpoint, or nil if none was made.
	Record *Record
	// Skipped is why none was made, or empty.
	Skipped string
	// NotCaptured lists what was seen and not captured.
	NotCaptured []workspace.Skipped
	// NotKept describes what the checkpoint does not store of the scanned files.
	NotKept workspace.NotKept
	// IgnoredChanged lists, at the end of a turn, the ignored files that changed
	// during it and were not captured before, and the git repositories that were
	// deleted or replaced: a rewind cannot restore them.
	IgnoredChanged []string
	// Recovered describes an interrupted rewind that was recovered first, or is nil.
	Recovered *Recovery
	// StateError is set if the state of the conversation, Request.Root, is lost: the
	// files are captured, and the record names no state. A state that is stored but
	// damaged is still named, because it may be repaired. The error wraps
	// conversation.ErrDataLoss.
	StateError error
	// IndexError is why the stat index could not be saved, or nil. The checkpoint is
	// complete; the next one will take longer.
	IndexError error
	Stats      workspace.Stats
}

// Place is the place of a turn: the state of its conversation before it, and its number.
type Place struct {
	Conversation string
	Root         blob.ID
	Turn         uint64
}

// Complete reports whether the result captured the workspace without exception.
func (r *Result) Complete() bool { return r.Record != nil && len(r.NotCaptured) == 0 }

// Checkpoint captures the workspace. When it returns, the tree and the record
// are durable.
func (w *Workspace) Checkpoint(ctx context.Context, req Request) (*Result, error) {
	if w.s.opts.DisableWrite {
		return &Result{Skipped: SkippedOff}, nil
	}
	st, leave, err := w.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer leave()
	req.Paths, req.Touched, req.Shared = w.relative(req.Paths), w.relative(req.Touched), w.relative(req.Shared)
	if w.throttled(st, &req) {
		return &Result{Skipped: SkippedThrottled, Recovered: st.recovered}, nil
	}
	if req.Choose != nil {
		atWork, err := w.atWork(ctx, st)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
		place, err := req.Choose(ctx, atWork)
		if err != nil {
			return nil, err
		}
		req.Conversation, req.Root, req.Turn = place.Conversation, place.Root, place.Turn
	}
	rec := &Record{
		Conversation: req.Conversation, Root: req.Root, MessageID: req.MessageID, Turn: req.Turn, Side: req.Side,
		Author: req.Author, Label: req.Label, Tool: req.Tool, Touched: req.Touched, Shared: req.Shared, Kind: Manual,
		unfinished: req.Unfinished,
	}
	if req.Auto {
		rec.Kind = Auto
	}
	res := &Result{Recovered: st.recovered}
	var next *round
	if req.Paths == nil {
		req.share, next = w.due()
	}
	cap, err := w.capturedTurn(ctx, st, &req, rec)
	if err == nil && req.IfChanged && st.tip != nil && cap.tree == st.tip.Tree {
		res.Skipped, res.NotCaptured, res.NotKept, res.Stats = SkippedUnchanged, cap.skipped, cap.notKept, cap.stats
		res.IndexError = errors.Join(w.keepIndex(cap.index), w.keepRound(next, cap.stats))
		return res, nil
	}
	if err == nil {
		err = w.commit(ctx, st, cap, rec, req.Holder)
	}
	if res.StateError = dropLostRoot(rec, err); res.StateError != nil {
		err = w.commit(ctx, st, cap, rec, req.Holder)
	}
	if isLost(err) {
		// A collector removed blobs that the index has: read everything again.
		req.Paths = nil
		if err = w.dropIndex(); err == nil {
			cap, err = w.capturedTurn(ctx, st, &req, rec)
		}
		if err == nil {
			cap.afresh = true
			err = w.commit(ctx, st, cap, rec, req.Holder)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if res.StateError == nil {
		res.StateError = w.damagedRoot(ctx, rec)
	}
	res.Record, res.NotCaptured, res.Stats, res.IgnoredChanged = rec, cap.skipped, cap.stats, cap.changedIgnored
	res.NotKept = cap.notKept
	res.IndexError = errors.Join(w.keepIndex(cap.index), w.keepRound(next, cap.stats))
	return res, nil
}

// capturedTurn is captured, and examines ignored files where a turn begins or ends.
func (w *Workspace) capturedTurn(ctx context.Context, st *state, req *Request, rec *Record) (*capture, error) {
	c, err := w.captured(ctx, st, req)
	if err == nil && req.Beside != nil {
		rec.beside, err = req.Beside(ctx)
	}
	if err != nil {
		return nil, err
	}
	if c, err = w.notice(ctx, st, c, rec); err == nil && req.State != nil {
		rec.Root, err = req.State(ctx, Seen{Tree: c.tree, IgnoredChanged: c.changedIgnored})
		req.State = nil // if the scan is repeated, the answer is the same
	}
	return c, err
}

// isLost reports whether an error means that the store lacks a blob. A blob of a plan
// that was never carried out may be gone while the index still has it: a commit fails
// if it is content, and reading the tree fails if it is a directory.
func isLost(err error) bool {
	var missing *kv.MissingBlobsError
	return errors.As(err, &missing) || errors.Is(err, blob.ErrNotFound)
}

// throttled reports whether an automatic checkpoint comes too soon. Those before or
// after a turn never do: they determine the authors.
func (w *Workspace) throttled(st *state, req *Request) bool {
	if !req.Auto || req.Side != NoSide || st.tip == nil || st.tip.Kind != Auto {
		return false
	}
	since := w.s.opts.Now().Sub(st.tip.Time)
	return since >= 0 && since < time.Duration(w.s.opts.ThresholdMS)*time.Millisecond
}

// capture is a captured tree that no record names yet.
type capture struct {
	tree    blob.ID
	index   *workspace.Index
	skipped []workspace.Skipped // of the whole workspace
	notKept workspace.NotKept
	changed []workspace.Change // against the tip
	scan    *workspace.Result  // nil if no scan captured it
	hinted  bool
	// stamps are stamps of ignored files at the beginning of a turn, changedIgnored
	// the files that changed by its end.
	stamps         []workspace.IgnoredStamp
	changedIgnored []string
	// revealed are the paths that were scanned although a rule ignores them.
	revealed map[string]bool
	afresh   bool // trusts nothing: every blob is named to the store
	stats    workspace.Stats
}

// refs lists the blobs that a commit must refer to if it relies on the base tree. The
// scan has them if it compared with that tree.
func (c *capture) refs(ctx context.Context, store blob.Store, base blob.ID) ([]blob.ID, error) {
	if c.scan != nil && c.scan.Base == base {
		return c.scan.Added, nil
	}
	return newRefs(ctx, store, base, c.tree)
}

// files is the number of files and links in the tree.
func (c *capture) files(ctx context.Context, store blob.Store) (uint64, error) {
	if c.scan != nil && c.scan.Base.IsZero() {
		return uint64(c.scan.AddedFiles), nil
	}
	return countFiles(ctx, store, c.tree)
}

// known returns the index for a scan: the saved one or, if it is lost, one of the
// latest checkpoint. Without either, a scan would drop ignored files that are
// captured because an agent touched them.
func (st *state) known(index *workspace.Index) *workspace.Index {
	if index == nil && st.tip != nil {
		return workspace.NewIndex(st.tip.Tree)
	}
	return index
}

// captured scans the workspace. The caller holds its lock.
func (w *Workspace) captured(ctx context.Context, st *state, req *Request) (*capture, error) {
	opts := w.s.opts.Scan
	opts.Touched, opts.Progress, opts.Force = slices.Concat(req.Touched, req.Shared), req.Progress, w.s.opts.Force
	opts.Share = req.share
	index := st.known(w.openIndex(st))
	if req.Paths == nil || st.tip == nil {
		res, err := workspace.Scan(ctx, w.s.blobs, w.path, index, &opts)
		if req.Side == After && w.isGone() {
			return w.capturedGone(ctx, st)
		}
		if err != nil {
			return nil, err
		}
		c, err := w.finish(ctx, st, index, res, res.NotCaptured)
		if err != nil {
			return nil, err
		}
		return w.keepKnown(ctx, st, index, c)
	}
	if index.Tree() != st.tip.Tree {
		index = workspace.NewIndex(st.tip.Tree)
	}
	res, err := workspace.ScanPaths(ctx, w.s.blobs, w.path, index, req.Paths, &opts)
	if err != nil {
		return nil, err
	}
	before, err := w.s.NotCaptured(ctx, st.tip)
	if err != nil {
		return nil, err
	}
	c, err := w.finish(ctx, st, index, res, mergeSkipped(before, res, req.Paths))
	if err == nil {
		c.hinted = true
	}
	return c, err
}

// isGone reports whether the workspace itself is missing.
func (w *Workspace) isGone() bool {
	_, err := os.Lstat(w.path)
	return isNotExist(err)
}

// capturedGone captures a workspace that a turn removed: everything in it is gone,
// and can be restored after the directory is created again.
func (w *Workspace) capturedGone(ctx context.Context, st *state) (*capture, error) {
	node, err := workspace.EncodeNode(nil)
	if err != nil {
		return nil, err
	}
	empty := blob.New(node)
	if err := w.s.blobs.Put(ctx, empty); err != nil {
		return nil, err
	}
	return w.finish(ctx, st, nil, &workspace.Result{Tree: empty.ID, Index: workspace.NewIndex(empty.ID)}, nil)
}

func (w *Workspace) finish(ctx context.Context, st *state, prev *workspace.Index, res *workspace.Result, skipped []workspace.Skipped) (*capture, error) {
	c := &capture{tree: res.Tree, index: res.Index, skipped: skipped, notKept: res.NotKept, changed: res.Changed, scan: res, stats: res.Stats}
	if st.tip == nil {
		c.changed = nil
		return c, nil
	}
	if prev == nil || prev.Tree() != st.tip.Tree || res.Changed == nil {
		var err error
		if c.changed, err = workspace.Diff(ctx, w.s.blobs, st.tip.Tree, res.Tree); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// commit stores a checkpoint of a captured tree.
func (w *Workspace) commit(ctx context.Context, st *state, c *capture, rec *Record, by Holder) error {
	b, err := w.prepare(ctx, st, c, rec, by)
	if err != nil {
		return err
	}
	if err := w.s.rows.Commit(ctx, b); err != nil {
		return fmt.Errorf("store checkpoint: %w", err)
	}
	return nil
}

// prepare fills the record, which by makes, and returns the batch that stores it.
func (w *Workspace) prepare(ctx context.Context, st *state, c *capture, rec *Record, by Holder) (*kv.Batch, error) {
	now := w.s.opts.Now()
	id, err := nextID(now, st.row.LastCheckpoint)
	if err != nil {
		return nil, err
	}
	rec.ID, rec.Number, rec.Workspace, rec.Time = id, st.row.LastNumber+1, w.id, now.Truncate(time.Millisecond)
	rec.Tree, rec.Hinted = c.tree, c.hinted
	b := &kv.Batch{Expect: []kv.Expect{{Key: keyspace.Workspace(w.id), Version: st.version}}}
	var base blob.ID
	if st.tip != nil {
		rec.Parent = st.tip.ID
		if !c.afresh {
			base = st.tip.Tree
		}
		// Blobs shared by both trees are safe from a collector while the record of
		// the old one exists; new ones are named below.
		b.Expect = append(b.Expect, kv.Expect{Key: keyspace.Checkpoint(st.tip.ID), Version: st.tip.version})
	}
	side, sideCtx := errgroup.WithContext(ctx)
	side.Go(func() (err error) {
		b.Refs, err = c.refs(sideCtx, w.s.blobs, base)
		return err
	})
	side.Go(func() (err error) {
		if st.tip != nil {
			return w.count(sideCtx, c.changed, rec)
		}
		rec.FilesChanged, err = c.files(sideCtx, w.s.blobs)
		return err
	})
	if err := side.Wait(); err != nil {
		return nil, err
	}
	if err := w.s.putSkipped(ctx, c, rec, b); err != nil {
		return nil, err
	}
	if !rec.Root.IsZero() {
		b.Refs = append(b.Refs, rec.Root)
	}
	row, err := w.advance(ctx, st, rec, by)
	if err != nil {
		return nil, err
	}
	data, err := rec.encode()
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	b.Set = append(b.Set, row,
		kv.Set{Key: keyspace.Checkpoint(rec.ID), Value: data},
		kv.Set{Key: keyspace.WorkspaceCheckpoint(w.id, rec.ID)})
	if rec.Conversation != "" {
		b.Set = append(b.Set, kv.Set{Key: keyspace.ConversationCheckpoint(rec.Conversation, rec.ID)})
	}
	return b, nil
}

// merge adds the parts of one batch to another.
func merge(to, from *kv.Batch) {
	to.Expect = append(to.Expect, from.Expect...)
	to.DeleteRange = append(to.DeleteRange, from.DeleteRange...)
	to.Delete = append(to.Delete, from.Delete...)
	to.Set = append(to.Set, from.Set...)
	to.Refs = append(to.Refs, from.Refs...)
}
