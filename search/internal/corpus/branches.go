package corpus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/transcript"
)

// leftWeight is how much a match counts in a branch left behind by a rewind, so that
// the same words in the current state come first.
const leftWeight = 0.5

// Sections returns the sections of a conversation to index, and the last saves of
// their branches. With an error it returns what could be read.
func (s *Source) Sections(ctx context.Context, info conversation.Info) ([]Section, []uint64, error) {
	title := Section{Name: "title", Digest: blob.Sum([]byte(info.Title)), Read: func(context.Context) ([]transcript.Message, error) {
		return []transcript.Message{{ID: "title", Role: transcript.System, Kind: TitleKind, Text: info.Title}}, nil
	}}
	walk := &sectioner{sections: []Section{title}, known: make(map[part]bool), current: make(map[string]blob.ID)}
	if info.Root.IsZero() {
		return walk.sections, nil, nil
	}
	lost := walk.state(ctx, s.reader, info.Root, 0)
	if lost != nil && !conversation.Damaged(lost) {
		return nil, nil, lost
	}
	left, err := s.left(ctx, info)
	if err != nil && !conversation.Damaged(err) {
		return nil, nil, err
	}
	lost = errors.Join(lost, err)
	var tips []uint64
	for _, save := range left {
		err := walk.state(ctx, s.reader, save.Root, save.Seq)
		if err != nil && !conversation.Damaged(err) {
			return nil, nil, err
		}
		lost = errors.Join(lost, err)
		tips = append(tips, save.Seq)
	}
	return walk.sections, tips, lost
}

// left returns the last saves of the branches that rewinds left behind, oldest first.
// Only conversations with a rewind cost more than one read: their last saves have a
// branch label.
func (s *Source) left(ctx context.Context, info conversation.Info) ([]conversation.Save, error) {
	for last, err := range s.Conversations.History(ctx, info.ID, &conversation.HistoryOptions{Newest: true, Limit: 1}) {
		if err != nil || last.Branch == "" {
			return nil, err
		}
	}
	branches, err := s.Conversations.Branches(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	var left []conversation.Save
	for _, b := range branches {
		if !b.Current {
			left = append(left, b.Tip)
		}
	}
	return left, nil
}

// part is a turn or a summary, by its id or digest, of a subagent.
type part struct {
	subagent string
	id       blob.ID
}

// sectioner collects the sections of states and of their subagents, the current
// state first.
type sectioner struct {
	sections []Section
	save     uint64             // of the state being read; 0 for the current one
	seen     map[string]bool    // subagents of that state
	known    map[part]bool      // parts in earlier sections
	current  map[string]blob.ID // turns of the current state, by section name
}

func (w *sectioner) state(ctx context.Context, reader *transcript.Reader, root blob.ID, save uint64) error {
	t, err := reader.At(ctx, root)
	if err != nil {
		return err
	}
	w.save, w.seen = save, make(map[string]bool)
	return w.add(ctx, t, "")
}

// name returns the name of a section of the state being read.
func (w *sectioner) name(of string) string {
	if w.save == 0 {
		return of
	}
	return fmt.Sprintf("save %d/%s", w.save, of)
}

// news reports whether no earlier section has a part of a branch. The current state
// is indexed unchanged, with its repetitions.
func (w *sectioner) news(p part) bool {
	before := w.known[p]
	w.known[p] = true
	return w.save == 0 || !before
}

// turnsAtOnce is how many turns are read together.
const turnsAtOnce = 64

func (w *sectioner) add(ctx context.Context, t *transcript.Transcript, subagent string) error {
	w.turns(t, subagent)
	if err := w.summaries(ctx, t, subagent); err != nil {
		return err
	}
	for _, id := range t.Subagents() {
		sub, err := t.Subagent(ctx, id)
		if errors.Is(err, conversation.ErrDataLoss) || errors.Is(err, conversation.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if w.seen[id] { // the id of a subagent is unique
			continue
		}
		w.seen[id] = true
		if err := w.add(ctx, sub, id); err != nil {
			return err
		}
	}
	return nil
}

func (w *sectioner) turns(t *transcript.Transcript, subagent string) {
	pages := &pager{t: t, subagent: subagent}
	for i, id := range t.TurnIDs() {
		if !w.news(part{subagent, id}) {
			continue
		}
		of := fmt.Sprintf("%q/%d", subagent, i+1)
		mark := strconv.AppendInt(id.Bytes(), t.TurnTime(i).UnixMilli(), 10)
		sec := Section{
			Name: w.name(of), Save: w.save,
			Read:  func(ctx context.Context) ([]transcript.Message, error) { return pages.turn(ctx, i, turnsAtOnce) },
			alone: func(ctx context.Context) ([]transcript.Message, error) { return pages.turn(ctx, i, 1) },
		}
		if w.save == 0 {
			w.current[of] = id
		} else if now, ok := w.current[of]; ok {
			sec.Besides, mark = of, append(mark, now.Bytes()...)
		}
		sec.Digest = blob.Sum(mark)
		w.sections = append(w.sections, sec)
	}
}

func (w *sectioner) summaries(ctx context.Context, t *transcript.Transcript, subagent string) error {
	opts := &transcript.Options{TurnFrom: 0, TurnTo: -t.Turns() - 1, WithoutSubagents: true, Lenient: true}
	all, err := collect(ctx, t, subagent, opts)
	if err != nil {
		return err
	}
	for i, m := range all {
		digest := blob.Sum([]byte(m.Text))
		if !w.news(part{subagent, digest}) {
			continue
		}
		w.sections = append(w.sections, Section{
			Name: w.name(fmt.Sprintf("%q/summary/%d", subagent, i)), Digest: digest, Save: w.save,
			Read: func(context.Context) ([]transcript.Message, error) { return []transcript.Message{m}, nil },
		})
	}
	return nil
}
