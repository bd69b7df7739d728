package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
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
	maxNoticed       = 4096
	maxIgnoredFiles  = 200
	maxIgnoredBytes  = 64 << 10
	maxIgnoredLookup = 64 // checkpoints back to the beginning of a turn
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
	looked := 0
	for began, err := range w.newestFirst(ctx, "") {
		if err != nil {
			return err
		}
		if began.Conversation == rec.Conversation && began.Turn == rec.Turn && began.MessageID == rec.MessageID && began.Side == Before {
			list, err := w.s.skippedList(ctx, began)
			if err != nil {
				return err
			}
			c.changedIgnored, err = workspace.ChangedIgnored(w.path, stampsOf(list))
			return err
		}
		if looked++; looked == maxIgnoredLookup {
			break
		}
	}
	return nil
}

// IgnoredChanges lists the ignored files that changed during the turn that a
// checkpoint ended and whose earlier contents no checkpoint has. It includes git
// repositories that were deleted or replaced; workspace.IsRepository recognises them.
func (s *Service) IgnoredChanges(ctx context.Context, rec *Record) ([]string, error) {
	list, err := s.skippedList(ctx, rec)
	return pathStrings(list.GetChangedIgnored()), err
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

// nameIgnored adds to a plan the ignored files that changed, and the repositories that
// were lost, in the rewound turns: they cannot be restored, and the plan must say so.
func (w *Workspace) nameIgnored(ctx context.Context, p *Plan) error {
	now := newBlind(p.NotCaptured)
	listed := make(map[string]bool, len(p.Actions))
	for i := range p.Actions {
		listed[p.Actions[i].Path] = true
	}
	for rec, err := range w.newestFirst(ctx, "") {
		if err != nil {
			return err
		}
		if rec.Number <= p.Target.Number {
			break
		}
		if rec.Side != After || p.Conversation != "" && rec.Conversation != p.Conversation {
			continue
		}
		paths, err := w.s.IgnoredChanges(ctx, rec)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if listed[path] || !p.request.asks(path) {
				continue
			}
			listed[path] = true
			at, err := w.entriesAt(ctx, path, p.Target.Tree, p.present)
			if err != nil {
				return err
			}
			if at[0] != nil || at[1] != nil {
				continue // captured since, and compared
			}
			by := writerOf(rec, ByConversation)
			reason := w.s.opts.Scan.LeftOut(path)
			if k, ok := now.at(path); ok {
				reason = k.Reason
			}
			reason = cmp.Or(reason, workspace.ReasonIgnored)
			a := Action{
				Path: path, Kind: Keep, Why: whyNotCaptured(reason), Writer: &by,
				Reason: fmt.Sprintf("%s, changed in turn %d and not captured before", reason, rec.Turn),
			}
			if workspace.IsRepository(path) {
				a.Why, a.Reason = WhyRepository, fmt.Sprintf("git repository, deleted or replaced in turn %d and never captured", rec.Turn)
			}
			p.Actions = append(p.Actions, a)
		}
	}
	slices.SortFunc(p.Actions, func(a, b Action) int { return cmp.Compare(a.Path, b.Path) })
	return nil
}
