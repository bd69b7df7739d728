package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/search/internal/corpus"
	"github.com/stet-dev/stet/transcript"
)

// one brings the index up to date with one conversation. It runs in a write
// transaction, so that the later of two processes sees the newer state. It returns false
// for a conversation that cannot be read, or only in part.
func (ix *Index) one(ctx context.Context, c *conn, id string, m corpus.Marks, stats *Stats) (bool, error) {
	info, err := ix.source.Conversations.Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return true, ix.remove(c, id, stats)
	}
	if conversation.Damaged(err) {
		stats.Damaged = append(stats.Damaged, id) // the indexed part can still be found
		return false, nil
	}
	if err != nil {
		return false, err
	}
	stats.Conversations++
	want, tips, err := ix.source.Sections(ctx, info)
	whole := !conversation.Damaged(err)
	if !whole {
		stats.Damaged = append(stats.Damaged, id)
		err = nil
	}
	if err != nil {
		return false, err
	}
	num, err := upsert(c, info, tips, m)
	if err != nil {
		return false, err
	}
	return whole, ix.sync(ctx, c, num, want, stats)
}

func upsert(c *conn, info conversation.Info, tips []uint64, m corpus.Marks) (int64, error) {
	left, err := json.Marshal(append([]uint64{}, tips...))
	if err != nil {
		return 0, err
	}
	err = c.exec(`INSERT INTO conv(id, title, save, root, updated, tips, listed, listed_version, record_version) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(id) DO UPDATE SET title = excluded.title, save = excluded.save, root = excluded.root, updated = excluded.updated, tips = excluded.tips,
			listed = excluded.listed, listed_version = excluded.listed_version, record_version = excluded.record_version`,
		info.ID, info.Title, info.Save, info.Root.Bytes(), info.Updated.UnixMilli(), string(left), m.Listed, m.ListedVersion, m.RecordVersion)
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

// sync updates the index of a conversation to exactly the wanted sections.
func (ix *Index) sync(ctx context.Context, c *conn, conv int64, want []corpus.Section, stats *Stats) error {
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
	// Remove unwanted sections first: a branch may have their content now.
	wanted := make(map[string]bool, len(want))
	for _, sec := range want {
		wanted[sec.Name] = true
	}
	for name, old := range have {
		if wanted[name] {
			continue
		}
		if err := errors.Join(fill(c, conv, corpus.Section{}, old.num, nil, stats), c.exec("DELETE FROM section WHERE num = ?", old.num)); err != nil {
			return err
		}
	}
	for _, sec := range want {
		old := have[sec.Name]
		if bytes.Equal(old.digest, sec.Digest.Bytes()) {
			continue
		}
		messages, err := sec.Read(ctx)
		if err != nil {
			return err
		}
		if old.num == 0 {
			err = c.exec("INSERT INTO section(conv, name, digest) VALUES(?, ?, ?)", conv, sec.Name, sec.Digest.Bytes())
			old.num = c.LastInsertRowID()
		} else {
			err = c.exec("UPDATE section SET digest = ? WHERE num = ?", sec.Digest.Bytes(), old.num)
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

// saidIn returns the digests of the messages of a section.
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

// fill writes the messages of a section. A growing turn keeps its earlier ones.
func fill(c *conn, conv int64, of corpus.Section, sec int64, messages []transcript.Message, stats *Stats) error {
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
	said, err := saidIn(c, conv, of.Besides)
	if err != nil {
		return err
	}
	docs := make([]corpus.Doc, len(messages))
	skip := make([]bool, len(messages))
	for i, m := range messages {
		docs[i] = corpus.NewDoc(m)
		skip[i] = said[string(docs[i].Digest)] || docs[i].Empty()
		if !skip[i] && bytes.Equal(have[i].digest, docs[i].Digest) {
			skip[i] = true
			delete(have, i)
		}
	}
	for _, old := range have {
		if err := errors.Join(c.exec("DELETE FROM words WHERE rowid = ?", old.num), c.exec("DELETE FROM doc WHERE num = ?", old.num)); err != nil {
			return err
		}
	}
	for i, d := range docs {
		if skip[i] {
			continue
		}
		stats.Messages++
		if err := insert(c, &d, conv, of.Save, sec, i); err != nil {
			return err
		}
	}
	return nil
}

func insert(c *conn, d *corpus.Doc, conv int64, save uint64, sec int64, place int) error {
	err := c.exec(`INSERT INTO doc(conv, section, place, digest, turn, message, role, kind, tool, time, subagent, save, weight) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		conv, sec, place, d.Digest, d.Turn, d.ID, string(d.Role), string(d.Kind), d.Tool, d.Time, d.Subagent, save, d.Weight(save))
	if err != nil {
		return err
	}
	return c.exec("INSERT INTO words(rowid, body, path) VALUES(?, ?, ?)", c.LastInsertRowID(), d.Body, d.Path)
}
