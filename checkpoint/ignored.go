package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// IgnoredFiles says what to do about files that exist when a turn begins and that a
// rule leaves out, such as an ignored .env.
type IgnoredFiles string

// The values of IgnoredFiles. The empty one means NoticeIgnored.
const (
	// NoticeIgnored: their stamps are recorded, and those that change during the turn
	// are reported. Their contents are not read.
	NoticeIgnored IgnoredFiles = "notice"
	// CaptureIgnored: small ones are captured, and a rewind restores them. Files that
	// Options.Scan excludes, or treats as secrets, are only noticed.
	CaptureIgnored IgnoredFiles = "small"
	// PassIgnored: they are left out entirely.
	PassIgnored IgnoredFiles = "off"
)

// Limits of the ignored files that are examined and captured when a turn begins.
// Files deep inside ignored directories, such as node_modules, are not examined.
const (
	maxNoticed      = 4096
	maxIgnoredFiles = 200
	maxIgnoredBytes = 64 << 10
)

// notice examines ignored files and git repositories at the beginning and at the end of a
// turn.
func (w *Workspace) notice(ctx context.Context, st *state, c *capture, rec *Record) (*capture, error) {
	if rec.Conversation == "" {
		return c, nil
	}
	switch rec.Side {
	case Before:
		var err error
		if mode := w.s.opts.Ignored; mode != PassIgnored {
			if c, err = w.noticeBegin(ctx, st, c, mode); err != nil {
				return nil, err
			}
		}
		repositories, err := workspace.StampRepositories(w.path, c.skipped, maxNoticed)
		if err != nil {
			return nil, fmt.Errorf("look at repositories: %w", err)
		}
		c.stamps = append(c.stamps, repositories...)
		return c, nil
	case After:
		return c, w.noticeEnd(ctx, c, rec)
	}
	return c, nil
}

// noticeBegin records the stamps of ignored files, or captures them.
func (w *Workspace) noticeBegin(ctx context.Context, st *state, c *capture, mode IgnoredFiles) (*capture, error) {
	var failed error
	captured := func(path string) bool {
		e, err := lookup(ctx, w.s.blobs, c.tree, path)
		failed = errors.Join(failed, err)
		return e != nil
	}
	stamps, _, err := workspace.StampIgnored(w.path, c.skipped, maxNoticed, captured)
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("look at ignored files: %w", err)
	}
	if mode == CaptureIgnored {
		var small []string
		stamps = slices.DeleteFunc(stamps, func(s workspace.IgnoredStamp) bool {
			fits := s.Size <= maxIgnoredBytes && len(small) < maxIgnoredFiles && w.s.opts.Scan.LeftOut(s.Path) == ""
			if fits {
				small = append(small, s.Path)
			}
			return fits
		})
		if len(small) > 0 {
			if c, err = w.reveal(ctx, st, c, small); err != nil {
				return nil, err
			}
		}
	}
	c.stamps = stamps
	return c, nil
}

// noticeEnd finds the ignored files that changed, and the repositories that were lost,
// since the turn began.
func (w *Workspace) noticeEnd(ctx context.Context, c *capture, rec *Record) error {
	began, err := w.beginning(ctx, rec, nil)
	if err != nil || began == nil {
		return err
	}
	c.changedIgnored, err = w.changedSince(ctx, began, nil)
	return err
}

// beginning returns the checkpoint that began the turn of another one, or nil if there is
// none here or the turn had ended before. The message does not identify the turn: at its
// end an agent may give it another one. An unreadable checkpoint is passed over: at worst,
// the turn has no beginning here.
//
// If looked is not nil, it keeps, by conversation, the key up to which earlier calls found no
// side of a turn. Such calls ask about ever older checkpoints.
func (w *Workspace) beginning(ctx context.Context, rec *Record, looked map[string]string) (*Record, error) {
	switch {
	case rec.Received: // its stamps are of another directory
		return nil, nil
	case rec.Side == Before:
		return rec, nil
	}
	r := keyspace.ConversationCheckpoints(rec.Conversation)
	if rec.ID != "" {
		r.End = keyspace.ConversationCheckpoint(rec.Conversation, rec.ID)
	}
	if end, ok := looked[rec.Conversation]; ok && end < r.End {
		r.End = end
	}
	if r.End <= r.Start {
		return nil, nil
	}
	first := true
	remember := func(end string) {
		if looked != nil && first {
			looked[rec.Conversation] = end
		}
		first = false
	}
	for began, err := range w.s.listed(ctx, r, true) {
		var unread *UnreadableError
		if errors.As(err, &unread) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if began.Side == NoSide || began.Workspace != w.id || began.Received || !recorded(began) {
			continue
		}
		remember(keyspace.ConversationCheckpoint(rec.Conversation, began.ID) + "\x00")
		switch {
		case rec.Turn != 0 && began.Turn > rec.Turn: // rec's continued in the background
		case began.Turn != rec.Turn:
			return nil, nil
		case began.Side == Before:
			return began, nil
		case rec.Turn == 0 || rec.Side != After: // else the end may come in parts
			return nil, nil
		}
	}
	remember(r.Start)
	return nil, nil
}

// changedSince lists the ignored files that changed, and the repositories that were
// lost, since a turn began. If next is the checkpoint before the next turn, those that
// were unchanged then are not listed: what changed later is not this turn's work.
func (w *Workspace) changedSince(ctx context.Context, began, next *Record) ([]string, error) {
	list, err := w.s.skippedList(ctx, began)
	if err != nil {
		return nil, err
	}
	later, err := w.s.skippedList(ctx, next)
	if err != nil {
		return nil, err
	}
	same := make(map[workspace.IgnoredStamp]bool)
	for _, s := range stampsOf(later) {
		same[s] = true
	}
	stamps := slices.DeleteFunc(stampsOf(list), func(s workspace.IgnoredStamp) bool { return same[s] })
	return workspace.ChangedIgnored(w.path, stamps)
}

// ignoredChanges is IgnoredChanges with the next of changedSince. It also returns the
// checkpoint that began the turn if nobody knows whether the turn made the changes.
func (w *Workspace) ignoredChanges(ctx context.Context, rec, next *Record, looked map[string]string) (paths []string, began *Record, err error) {
	if rec.Side == After {
		list, err := w.s.skippedList(ctx, rec)
		return pathStrings(list.GetChangedIgnored()), nil, err
	}
	if rec.Conversation == "" || !recorded(rec) {
		return nil, nil, nil
	}
	if began, err = w.beginning(ctx, rec, looked); err != nil || began == nil {
		return nil, nil, err
	}
	paths, err = w.changedSince(ctx, began, next)
	return paths, began, err
}

// IgnoredChanges lists the ignored files that changed during the turn that a
// checkpoint ended and whose earlier contents no checkpoint has. It includes git
// repositories that were deleted or replaced; workspace.IsRepository recognises them.
// For another checkpoint of a turn that had not ended, because it continues or was
// killed, it lists what changed from the beginning of the turn until now, whoever did it.
func (s *Service) IgnoredChanges(ctx context.Context, rec *Record) ([]string, error) {
	w := &Workspace{s: s, id: rec.Workspace}
	if rec.Side != After && rec.Conversation != "" { // others are not compared with the present
		var err error
		if w.path, err = s.WorkspacePath(ctx, rec.Workspace); err != nil {
			return nil, err
		}
	}
	paths, _, err := w.ignoredChanges(ctx, rec, nil, nil)
	return paths, err
}

func stampsOf(list *stetv1.NotCapturedList) []workspace.IgnoredStamp {
	var out []workspace.IgnoredStamp
	for _, s := range list.GetStamps() {
		out = append(out, workspace.IgnoredStamp{Path: string(s.GetPath()), Size: s.GetSize(), Mtime: s.GetMtime(), Ctime: s.GetCtime(), Inode: s.GetInode()})
	}
	return out
}

func wireStamps(stamps []workspace.IgnoredStamp) []*stetv1.IgnoredStamp {
	var out []*stetv1.IgnoredStamp
	for _, s := range stamps {
		out = append(out, &stetv1.IgnoredStamp{Path: []byte(s.Path), Size: s.Size, Mtime: s.Mtime, Ctime: s.Ctime, Inode: s.Inode})
	}
	return out
}

// ignoredChange is a path that a plan cannot restore.
type ignoredChange struct {
	path string
	by   Writer
	when string // such as "in turn 3"
}

// takenBack selects the checkpoints whose turns a plan takes back.
type takenBack struct {
	from *Record            // the oldest
	has  func(*Record) bool // of those after it; nil if all are of such turns
}

// past reports whether a checkpoint is before the oldest. The turn of a target went on
// after it, unless it ended there.
func (t takenBack) past(rec *Record) bool {
	return rec.Number < t.from.Number || rec.Number == t.from.Number && rec.Side == After && t.has == nil
}

// ignoredIn lists the ignored files that changed, and the repositories that were lost,
// in the turns that a plan takes back. The latest turn comes first.
func (w *Workspace) ignoredIn(ctx context.Context, p *Plan, turns takenBack) ([]ignoredChange, error) {
	type turn struct {
		conversation string
		number       uint64
	}
	var out []ignoredChange
	seen := make(map[turn]bool)      // turns of which a later checkpoint was seen
	next := make(map[string]*Record) // where the next turn of a conversation began
	looked := make(map[string]string)
	for rec, err := range w.newestFirst(ctx, "") {
		var unread *UnreadableError
		if errors.As(err, &unread) && unread.ID < turns.from.ID {
			continue // earlier checkpoints do not matter
		}
		if err != nil {
			return nil, err
		}
		if turns.past(rec) {
			break
		}
		if rec.Conversation == "" || !recorded(rec) || !p.hasTurn(rec.Conversation, rec.Turn) {
			continue
		}
		of := turn{rec.Conversation, rec.Turn}
		taken := turns.has == nil || turns.has(rec)
		if taken && (rec.Side == After || !seen[of]) {
			paths, began, err := w.ignoredChanges(ctx, rec, next[rec.Conversation], looked)
			if err != nil {
				return nil, err
			}
			by, when := writerOf(rec, ByConversation), fmt.Sprintf("in turn %d", rec.Turn)
			if began != nil {
				by, when = Writer{Class: ByUnseen}, fmt.Sprintf("since turn %d began", rec.Turn)
			}
			for _, path := range paths {
				out = append(out, ignoredChange{path, by, when})
			}
		}
		if taken {
			seen[of] = rec.Side != Before
		}
		if rec.Side == Before {
			next[rec.Conversation] = rec
		}
	}
	if turns.has != nil {
		return out, nil // a single turn has its beginning
	}
	for _, t := range p.AtWork { // without a checkpoint since the target
		of := turn{t.Conversation, t.Number}
		if _, ok := seen[of]; ok || t.Began == "" || t.Began > p.Target.ID || !p.hasTurn(t.Conversation, t.Number) {
			continue
		}
		began, err := w.s.Get(ctx, t.Began)
		if errors.Is(err, ErrNotFound) || kv.Damaged(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		paths, err := w.changedSince(ctx, began, nil)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			out = append(out, ignoredChange{path, Writer{Class: ByUnseen}, fmt.Sprintf("since turn %d began", t.Number)})
		}
	}
	return out, nil
}

// nameIgnored adds to a plan the ignored files that changed, and the repositories that
// were lost, in the rewound turns: they cannot be restored to what they were at a tree,
// and the plan must say so.
func (w *Workspace) nameIgnored(ctx context.Context, p *Plan, then blob.ID, changes []ignoredChange) error {
	now := newBlind(p.NotCaptured)
	listed := make(map[string]int, len(p.Actions))
	for i := range p.Actions {
		listed[p.Actions[i].Path] = i
	}
	for _, c := range changes {
		if i, ok := listed[c.path]; ok {
			if p.request.OnlyTurn != 0 {
				p.Actions[i].own = true // if it is kept, the turn's change is
			}
			continue
		}
		if !p.request.asks(c.path) {
			continue
		}
		at, err := w.entriesAt(ctx, c.path, then, p.present)
		if err != nil {
			return err
		}
		if at[0] != nil || at[1] != nil {
			continue // captured since, and compared
		}
		reason := w.s.opts.Scan.LeftOut(c.path)
		if k, ok := now.at(c.path); ok {
			reason = k.Reason
		}
		reason = cmp.Or(reason, workspace.ReasonIgnored)
		a := Action{
			Path: c.path, Kind: Keep, Why: whyNotCaptured(reason), Writer: &c.by, own: true,
			Reason: fmt.Sprintf("%s, changed %s and not captured before", reason, c.when),
		}
		if workspace.IsRepository(c.path) {
			a.Why, a.Reason = WhyRepository, fmt.Sprintf("git repository, deleted or replaced %s and never captured", c.when)
		}
		listed[c.path] = len(p.Actions)
		p.Actions = append(p.Actions, a)
	}
	slices.SortFunc(p.Actions, func(a, b Action) int { return cmp.Compare(a.Path, b.Path) })
	return nil
}
