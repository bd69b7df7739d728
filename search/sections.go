package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/transcript"
)

// A conversation is indexed in sections, each with a digest: its title, its
// summaries, every turn and every subagent, and those of its branches that were
// left by going back. A section whose digest is known is not read again.
type section struct {
	name   string
	digest blob.ID
	// read returns its messages.
	read func(context.Context) ([]transcript.Message, error)
	// save is the last one of the branch, 0 for the current state.
	save uint64
	// besides names the section of the current state that has the same turn. What
	// both say is found once.
	besides string
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
	want, tips, err := ix.sections(ctx, info)
	if errors.Is(err, conversation.ErrDataLoss) {
		stats.Damaged = append(stats.Damaged, id)
		err = nil
	}
	if err != nil {
		return err
	}
	num, err := upsert(c, info, tips, m)
	if err != nil {
		return err
	}
	return ix.sync(ctx, c, num, want, stats)
}

func upsert(c *conn, info conversation.Info, tips []uint64, m marks) (int64, error) {
	left, err := json.Marshal(append([]uint64{}, tips...))
	if err != nil {
		return 0, err
	}
	err = c.exec(`INSERT INTO conv(id, title, save, root, updated, tips, listed, listed_version, record_version) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(id) DO UPDATE SET title = excluded.title, save = excluded.save, root = excluded.root, updated = excluded.updated, tips = excluded.tips,
			listed = excluded.listed, listed_version = excluded.listed_version, record_version = excluded.record_version`,
		info.ID, info.Title, info.Save, info.Root.Bytes(), info.Updated.UnixMilli(), string(left), m.listed, m.listedVersion, m.recordVersion)
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
	// What is no longer wanted goes first: it may be what a branch has now.
	wanted := make(map[string]bool, len(want))
	for _, sec := range want {
		wanted[sec.name] = true
	}
	for name, old := range have {
		if wanted[name] {
			continue
		}
		if err := errors.Join(fill(c, conv, section{}, old.num, nil, stats), c.exec("DELETE FROM section WHERE num = ?", old.num)); err != nil {
			return err
		}
	}
	for _, sec := range want {
		old := have[sec.name]
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
			err = fill(c, conv, sec, old.num, messages, stats)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// saidIn returns the digests of what a section says.
func saidIn(c *conn, conv int64, name string) (map[string]bool, error) {
	said := make(map[string]bool)
	if name == "" {
		return said, nil
	}
	err := c.query("SELECT digest FROM doc WHERE section = (SELECT num FROM section WHERE conv = ? AND name = ?)", func(s *sqlite3.Stmt) {
		said[string(s.ColumnBlob(0, nil))] = true
	}, conv, name)
	return said, err
}

// fill makes a section hold the messages. A turn that grows keeps those it had.
func fill(c *conn, conv int64, of section, sec int64, messages []transcript.Message, stats *Stats) error {
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
	said, err := saidIn(c, conv, of.besides)
	if err != nil {
		return err
	}
	docs := make([]doc, len(messages))
	for i, m := range messages {
		docs[i] = newDoc(m)
		if said[string(docs[i].digest)] {
			docs[i].body, docs[i].path = "", ""
			continue
		}
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
		if err := d.insert(c, conv, of.save, sec, i); err != nil {
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

func (d *doc) insert(c *conn, conv int64, save uint64, sec int64, place int) error {
	weight := weightOf(d.Message)
	if save > 0 {
		weight *= leftWeight
	}
	err := c.exec(`INSERT INTO doc(conv, section, place, digest, turn, message, role, kind, tool, time, subagent, save, weight) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		conv, sec, place, d.digest, d.Turn, cut(d.ID, maxField), string(d.Role), string(d.Kind), d.tool, d.time, cut(d.Subagent, maxField), save, weight)
	if err != nil {
		return err
	}
	return c.exec("INSERT INTO words(rowid, body, path) VALUES(?, ?, ?)", c.LastInsertRowID(), d.body, d.path)
}
