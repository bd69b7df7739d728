package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Resolve finds the checkpoint that a reference names:
//
//	@                 the workspace now; the record is nil
//	01jcx4            an id or any unique prefix of one, first in the workspace, then in all
//	c7                the checkpoint's number in the workspace
//	i7                the number of an imported checkpoint in its conversation
//	MESSAGE           a message id: the checkpoint after it, else the one before
//	before:MESSAGE    the one before it
//	turn:5            the state after the turn
//	before:turn:6     the state before the turn
//	pin:NAME          a pinned checkpoint, first of the workspace, then the only one of all
//	@{10m}, @{14:20}  the last checkpoint that old, or at that time
//
// Turns and messages are those of the given conversation or, if that is empty, of the
// conversation of the latest checkpoint that has one.
func (w *Workspace) Resolve(ctx context.Context, ref, conversation string) (*Record, error) {
	return w.s.Resolve(ctx, w.id, conversation, ref)
}

// Resolve is Workspace.Resolve for a workspace that need not be open or exist, by its
// id. Without a workspace it looks in that of the conversation's latest checkpoint.
// Without either it finds ids, prefixes and pins; for other references it returns
// ErrBadRef.
func (s *Service) Resolve(ctx context.Context, workspace, conversation, ref string) (*Record, error) {
	if s.opts.DisableRead {
		return nil, ErrDisabled
	}
	rec, err := s.resolve(ctx, workspace, conversation, ref)
	if err != nil {
		return nil, fmt.Errorf("resolve %q: %w", ref, err)
	}
	return rec, nil
}

func (s *Service) resolve(ctx context.Context, workspace, conversation, ref string) (*Record, error) {
	if pin, ok := strings.CutPrefix(ref, "pin:"); ok {
		return s.resolvePin(ctx, workspace, conversation, pin)
	}
	if workspace == "" && ref != "" && ref != "@" {
		if ValidID(ref) {
			rec, err := s.Get(ctx, strings.ToLower(ref))
			if conversation == "" || !errors.Is(err, ErrNotFound) {
				return rec, err // else it may be the id of a message
			}
		}
		if conversation == "" {
			return s.anywhere(ctx, ref)
		}
		var err error
		if workspace, err = s.lastWorkspace(ctx, conversation); err != nil {
			return nil, err
		}
	}
	return (&Workspace{s: s, id: workspace}).resolve(ctx, ref, conversation)
}

// resolvePin finds a pin, without a workspace first in that of the conversation.
func (s *Service) resolvePin(ctx context.Context, workspace, conversation, name string) (*Record, error) {
	if workspace == "" && conversation != "" {
		var err error
		if workspace, err = s.lastWorkspace(ctx, conversation); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return s.Pinned(ctx, workspace, name)
}

// anywhere finds a checkpoint without knowing a workspace.
func (s *Service) anywhere(ctx context.Context, ref string) (*Record, error) {
	_, err := strconv.ParseUint(ref[1:], 10, 64)
	number := err == nil && strings.ToLower(ref)[0] == 'c'
	if number || strings.ContainsAny(ref, "@:") {
		return nil, fmt.Errorf("%w: name a workspace or a conversation, too", ErrBadRef)
	}
	return s.Find(ctx, ref)
}

// lastWorkspace returns the workspace of a conversation's latest checkpoint.
func (s *Service) lastWorkspace(ctx context.Context, conversation string) (string, error) {
	for rec, err := range s.ListConversation(ctx, conversation) {
		if err != nil {
			return "", err
		}
		return rec.Workspace, nil
	}
	return "", fmt.Errorf("%w: conversation %q has none", ErrNotFound, conversation)
}

func (w *Workspace) resolve(ctx context.Context, ref, conversation string) (*Record, error) {
	switch {
	case ref == "":
		return nil, fmt.Errorf("%w: empty", ErrBadRef)
	case ref == "@":
		return nil, nil
	case strings.HasPrefix(ref, "@{"):
		return w.byTime(ctx, ref)
	}
	side := NoSide
	if rest, ok := strings.CutPrefix(ref, "before:"); ok {
		ref, side = rest, Before
	} else if rest, ok := strings.CutPrefix(ref, "after:"); ok {
		ref, side = rest, After
	}
	if number, ok := strings.CutPrefix(ref, "turn:"); ok {
		turn, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: turn %q", ErrBadRef, number)
		}
		return w.byTurn(ctx, conversation, turn, side)
	}
	if side == NoSide {
		rec, err := w.byName(ctx, ref)
		if !errors.Is(err, ErrNotFound) {
			return rec, err
		}
	}
	rec, err := w.byMessage(ctx, conversation, ref, side)
	if side == NoSide && errors.Is(err, ErrNotFound) {
		if other, findErr := w.s.Find(ctx, ref); !errors.Is(findErr, ErrNotFound) {
			return other, findErr
		}
		return w.importedNamed(ctx, conversation, ref)
	}
	return rec, err
}

// byName finds a checkpoint of the workspace by number or prefix, and any checkpoint
// by its id.
func (w *Workspace) byName(ctx context.Context, ref string) (*Record, error) {
	lower := strings.ToLower(ref)
	if number, err := strconv.ParseUint(strings.TrimPrefix(lower, "c"), 10, 64); err == nil && lower[0] == 'c' {
		return w.byNumber(ctx, number)
	}
	if !isPrefix(lower) {
		return nil, ErrNotFound // not a prefix of an id
	}
	const most = 8
	var found []string
	r := keyspace.Prefix(keyspace.WorkspaceCheckpoint(w.id, lower))
	for row, err := range w.s.rows.Scan(ctx, r, kv.ScanOptions{KeysOnly: true, Limit: most}) {
		if err != nil {
			return nil, err
		}
		found = append(found, keyspace.Last(row.Key))
	}
	switch len(found) {
	case 0:
		if len(lower) == idLength { // a whole id may be of another workspace
			return w.s.Get(ctx, lower)
		}
		return nil, ErrNotFound
	case 1:
		return w.s.Get(ctx, found[0])
	}
	return nil, &AmbiguousError{Ref: ref, Candidates: found}
}

func (w *Workspace) byNumber(ctx context.Context, number uint64) (*Record, error) {
	return w.find(ctx, func(rec *Record) bool { return rec.Number == number })
}

// find returns the newest matching checkpoint.
func (w *Workspace) find(ctx context.Context, fits func(*Record) bool) (*Record, error) {
	var unread *UnreadableError
	for rec, err := range w.newestFirst(ctx, "") {
		if errors.As(err, &unread) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if fits(rec) {
			return rec, nil
		}
	}
	if unread != nil { // it may be the match
		return nil, unread
	}
	return nil, ErrNotFound
}

// currentConversation returns the conversation of the latest checkpoint that has
// one, or "".
func (w *Workspace) currentConversation(ctx context.Context, st *state) string {
	if st != nil && st.tip != nil && st.tip.Conversation != "" {
		return st.tip.Conversation
	}
	rec, err := w.find(ctx, func(rec *Record) bool { return rec.Conversation != "" })
	if err != nil {
		return ""
	}
	return rec.Conversation
}

// recorded reports whether a checkpoint was taken at its turn and message, rather
// than repeating them after a rewind.
func recorded(rec *Record) bool { return rec.Kind != Safety && rec.Kind != Rewound }

func (w *Workspace) byTurn(ctx context.Context, conversation string, turn uint64, side Side) (*Record, error) {
	if conversation == "" {
		conversation = w.currentConversation(ctx, nil)
	}
	rec, err := w.at(ctx, conversation, turn, side, func(*Record) bool { return true })
	if errors.Is(err, ErrNotFound) {
		return w.inherited(ctx, conversation, turn, side)
	}
	return rec, err
}

// at finds the latest checkpoint at a turn of a conversation that fits.
func (w *Workspace) at(ctx context.Context, conversation string, turn uint64, side Side, fits func(*Record) bool) (*Record, error) {
	at := func(turn uint64, before bool) func(*Record) bool {
		return func(rec *Record) bool {
			return recorded(rec) && rec.Conversation == conversation && rec.Turn == turn && (rec.Side == Before) == before && fits(rec)
		}
	}
	if side != Before {
		return w.findOf(ctx, conversation, at(turn, false))
	}
	rec, err := w.findOf(ctx, conversation, at(turn, true))
	if errors.Is(err, ErrNotFound) && turn > 0 {
		return w.findOf(ctx, conversation, at(turn-1, false)) // after turn 5 is before turn 6
	}
	return rec, err
}

// findOf is like find, but also finds imported checkpoints of a conversation.
func (w *Workspace) findOf(ctx context.Context, conversation string, fits func(*Record) bool) (*Record, error) {
	rec, err := w.find(ctx, fits)
	if errors.Is(err, ErrNotFound) && conversation != "" {
		return w.importedBy(ctx, conversation, "", fits)
	}
	return rec, err
}

func (w *Workspace) byMessage(ctx context.Context, conversation, message string, side Side) (*Record, error) {
	at := func(before bool) func(*Record) bool {
		return func(rec *Record) bool {
			return recorded(rec) && rec.MessageID == message && (rec.Side == Before) == before &&
				(conversation == "" || rec.Conversation == conversation)
		}
	}
	find := func(before bool) (*Record, error) {
		rec, err := w.find(ctx, at(before))
		if errors.Is(err, ErrNotFound) {
			return w.importedBy(ctx, conversation, message, at(before))
		}
		return rec, err
	}
	if side == Before {
		return find(true)
	}
	rec, err := find(false)
	if errors.Is(err, ErrNotFound) && side == NoSide {
		return find(true)
	}
	return rec, err
}

// byTime finds the last checkpoint at or before a time: an age such as @{10m} or
// @{1h30m}, a time of day, or a date with or without a time.
func (w *Workspace) byTime(ctx context.Context, ref string) (*Record, error) {
	text, ok := strings.CutSuffix(ref[len("@{"):], "}")
	if !ok {
		return nil, fmt.Errorf("%w: no closing brace", ErrBadRef)
	}
	at, err := parseTime(text, w.s.opts.Now())
	if err != nil {
		return nil, err
	}
	return w.find(ctx, func(rec *Record) bool { return !rec.Time.After(at) })
}

func parseTime(text string, now time.Time) (time.Time, error) {
	if age, err := time.ParseDuration(text); err == nil && age >= 0 {
		return now.Add(-age), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if t.Second() == 0 && layout == "15:04" {
			at = at.Add(time.Minute - time.Millisecond) // the whole minute
		}
		if at.Add(-time.Minute).After(now) {
			at = at.AddDate(0, 0, -1)
		}
		return at, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: time %q", ErrBadRef, text)
}
