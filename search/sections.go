package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/transcript"
)

// A conversation is indexed in sections, each with a digest: its title, its
// summaries, every turn and every subagent. A section whose digest is known is
// not read again.
type section struct {
	name   string
	digest blob.ID
	// read returns its messages.
	read func(context.Context) ([]transcript.Message, error)
}

// one brings the index up to date with one conversation. It runs in a write
// transaction, so that of two processes the later one sees the newer state.
func (ix *Index) one(ctx context.Context, c *conn, id string, m marks, stats *Stats) error {
	info, err := ix.conversations.Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return ix.remove(c, id, stats)
	}
	if err != nil {
		return err
	}
	stats.Conversations++
	num, err := upsert(c, info, m)
	if err != nil {
		return err
	}
	want, err := ix.sections(ctx, info)
	if errors.Is(err, conversation.ErrDataLoss) {
		stats.Damaged = append(stats.Damaged, id)
		err = nil
	}
	if err != nil {
		return err
	}
	return ix.sync(ctx, c, num, want, stats)
}

func upsert(c *conn, info conversation.Info, m marks) (int64, error) {
	err := c.exec(`INSERT INTO conv(id, title, save, root, updated, listed, listed_version, record_version) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(id) DO UPDATE SET title = excluded.title, save = excluded.save, root = excluded.root, updated = excluded.updated,
			listed = excluded.listed, listed_version = excluded.listed_version, record_version = excluded.record_version`,
		info.ID, info.Title, info.Save, info.Root.Bytes(), info.Updated.UnixMilli(), m.listed, m.listedVersion, m.recordVersion)
	if err != nil {
		return 0, err
	}
	return number(c, info.ID)
}

// number returns the number of a conversation, 0 if it is not indexed.
func number(c *conn, id string) (num int64, err error) {
	err = c.query("SELECT num FROM conv WHERE id = ?", func(s *sqlite3.Stmt) { num = s.ColumnInt64(0) }, id)
	return num, err
}

func (ix *Index) remove(c *conn, id string, stats *Stats) error {
	num, err := number(c, id)
	if err != nil || num == 0 {
		return err
	}
	stats.Removed++
	return errors.Join(
		c.exec("DELETE FROM words WHERE rowid IN (SELECT num FROM doc WHERE section IN (SELECT num FROM section WHERE conv = ?))", num),
		c.exec("DELETE FROM doc WHERE section IN (SELECT num FROM section WHERE conv = ?)", num),
		c.exec("DELETE FROM section WHERE conv = ?", num),
		c.exec("DELETE FROM conv WHERE num = ?", num),
	)
}

// sections returns what the index must hold of a conversation. With an error it
// returns what can be told without the state.
func (ix *Index) sections(ctx context.Context, info conversation.Info) ([]section, error) {
	all := []section{{"title", blob.Sum([]byte(info.Title)), func(context.Context) ([]transcript.Message, error) {
		return []transcript.Message{{ID: "title", Role: transcript.System, Kind: titleKind, Text: info.Title}}, nil
	}}}
	if info.Root.IsZero() {
		return all, nil
	}
	t, err := ix.reader.At(ctx, info.Root)
	if err != nil {
		return all, err
	}
	walk := &sectioner{sections: all, seen: make(map[string]bool)}
	err = walk.add(ctx, t, "")
	return walk.sections, err
}

// sectioner collects the sections of a transcript and of its subagents.
type sectioner struct {
	sections []section
	seen     map[string]bool
}

// turnsAtOnce is how many turns are read together.
const turnsAtOnce = 64

func (w *sectioner) add(ctx context.Context, t *transcript.Transcript, subagent string) error {
	pages := &pager{t: t, subagent: subagent}
	for i, id := range t.TurnIDs() {
		digest := blob.Sum(strconv.AppendInt(id.Bytes(), t.TurnTime(i).UnixMilli(), 10))
		w.sections = append(w.sections, section{fmt.Sprintf("%q/%d", subagent, i+1), digest, func(ctx context.Context) ([]transcript.Message, error) {
			return pages.turn(ctx, i)
		}})
	}
	summaries, err := collect(ctx, t, subagent, &transcript.Options{TurnFrom: 0, TurnTo: -t.Turns() - 1, WithoutSubagents: true, Lenient: true})
	if err != nil {
		return err
	}
	for i, m := range summaries {
		w.sections = append(w.sections, section{fmt.Sprintf("%q/summary/%d", subagent, i), blob.Sum([]byte(m.Text)), func(context.Context) ([]transcript.Message, error) {
			return []transcript.Message{m}, nil
		}})
	}
	for _, id := range t.Subagents() {
		sub, err := t.Subagent(ctx, id)
		if errors.Is(err, conversation.ErrDataLoss) || errors.Is(err, conversation.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if w.seen[id] { // the id of a subagent is its own, wherever it is named
			continue
		}
		w.seen[id] = true
		if err := w.add(ctx, sub, id); err != nil {
			return err
		}
	}
	return nil
}

// pager reads turns that are asked for in order, some at a time.
type pager struct {
	t        *transcript.Transcript
	subagent string
	from     int
	turns    [][]transcript.Message
}

func (p *pager) turn(ctx context.Context, i int) ([]transcript.Message, error) {
	if i < p.from || i >= p.from+len(p.turns) {
		n := min(turnsAtOnce, p.t.Turns()-i)
		opts := &transcript.Options{TurnFrom: i, TurnTo: i + n, WithoutSubagents: true, WithoutSummaries: true, Lenient: true}
		p.from, p.turns = i, make([][]transcript.Message, n)
		messages, err := collect(ctx, p.t, p.subagent, opts)
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if at := m.Turn - 1 - i; at >= 0 && at < n {
				p.turns[at] = append(p.turns[at], m)
			}
		}
	}
	return p.turns[i-p.from], nil
}

// collect returns messages, as those of a subagent if one is named.
func collect(ctx context.Context, t *transcript.Transcript, subagent string, opts *transcript.Options) ([]transcript.Message, error) {
	var all []transcript.Message
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return nil, err
		}
		if m.Kind == transcript.Failure {
			continue
		}
		if m.Subagent == "" {
			m.Subagent = subagent
		}
		all = append(all, m)
	}
	return all, nil
}

// sync makes the index of a conversation hold the wanted sections and no others.
func (ix *Index) sync(ctx context.Context, c *conn, conv int64, want []section, stats *Stats) error {
	type known struct {
		num    int64
		digest []byte
	}
	have := make(map[string]known)
	err := c.query("SELECT name, num, digest FROM section WHERE conv = ?", func(s *sqlite3.Stmt) {
		have[s.ColumnText(0)] = known{s.ColumnInt64(1), s.ColumnBlob(2, nil)}
	}, conv)
	if err != nil {
		return err
	}
	for _, sec := range want {
		old := have[sec.name]
		delete(have, sec.name)
		if bytes.Equal(old.digest, sec.digest.Bytes()) {
			continue
		}
		messages, err := sec.read(ctx)
		if err != nil {
			return err
		}
		if old.num == 0 {
			err = c.exec("INSERT INTO section(conv, name, digest) VALUES(?, ?, ?)", conv, sec.name, sec.digest.Bytes())
			old.num = c.LastInsertRowID()
		} else {
			err = c.exec("UPDATE section SET digest = ? WHERE num = ?", sec.digest.Bytes(), old.num)
		}
		if err == nil {
			err = fill(c, conv, old.num, messages, stats)
		}
		if err != nil {
			return err
		}
	}
	for _, old := range have {
		if err := errors.Join(fill(c, conv, old.num, nil, stats), c.exec("DELETE FROM section WHERE num = ?", old.num)); err != nil {
			return err
		}
	}
	return nil
}

// fill makes a section hold the messages. A turn that grows keeps those it had.
func fill(c *conn, conv, sec int64, messages []transcript.Message, stats *Stats) error {
	type known struct {
		num    int64
		digest []byte
	}
	have := make(map[int]known)
	err := c.query("SELECT place, num, digest FROM doc WHERE section = ?", func(s *sqlite3.Stmt) {
		have[s.ColumnInt(0)] = known{s.ColumnInt64(1), s.ColumnBlob(2, nil)}
	}, sec)
	if err != nil {
		return err
	}
	docs := make([]doc, len(messages))
	for i, m := range messages {
		docs[i] = newDoc(m)
		if bytes.Equal(have[i].digest, docs[i].digest) {
			docs[i].known = true
			delete(have, i)
		}
	}
	for _, old := range have {
		if err := errors.Join(c.exec("DELETE FROM words WHERE rowid = ?", old.num), c.exec("DELETE FROM doc WHERE num = ?", old.num)); err != nil {
			return err
		}
	}
	for i, d := range docs {
		if d.known || d.body == "" && d.path == "" {
			continue
		}
		stats.Messages++
		if err := d.insert(c, conv, sec, i); err != nil {
			return err
		}
	}
	return nil
}

// doc is a message as the index holds it.
type doc struct {
	transcript.Message
	tool, body, path string
	time             int64
	digest           []byte
	known            bool
}

func newDoc(m transcript.Message) doc {
	d := doc{Message: m, body: indexed(bodyOf(m))}
	if m.Tool != nil {
		d.tool, d.path = cut(m.Tool.Name, maxField), indexed(cut(m.Tool.Path, maxField))
	}
	if !m.Time.IsZero() {
		d.time = m.Time.UnixMilli()
	}
	var b []byte
	for _, s := range []string{m.ID, strconv.Itoa(m.Turn), string(m.Role), string(m.Kind), m.Subagent, d.tool, d.path, strconv.FormatInt(d.time, 10), d.body} {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(append(b, ':'), s...)
	}
	sum := blob.Sum(b)
	d.digest = sum.Bytes()[:16]
	return d
}

// maxField bounds names and paths.
const maxField = 4096

func (d *doc) insert(c *conn, conv, sec int64, place int) error {
	err := c.exec(`INSERT INTO doc(conv, section, place, digest, turn, message, role, kind, tool, time, subagent, weight) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		conv, sec, place, d.digest, d.Turn, cut(d.ID, maxField), string(d.Role), string(d.Kind), d.tool, d.time, cut(d.Subagent, maxField), weightOf(d.Message))
	if err != nil {
		return err
	}
	return c.exec("INSERT INTO words(rowid, body, path) VALUES(?, ?, ?)", c.LastInsertRowID(), d.body, d.path)
}
