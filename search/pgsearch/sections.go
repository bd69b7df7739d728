package pgsearch

import (
	"bytes"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/search/internal/corpus"
)

// sync updates the index of the conversation to exactly the wanted sections.
func (w *writer) sync(ctx context.Context, want []corpus.Section) error {
	have, err := w.sections(ctx)
	if err != nil {
		return err
	}
	// Remove unwanted sections first: a branch may have their content now.
	wanted := make(map[string]bool, len(want))
	for _, s := range want {
		wanted[string(key(s.Name))] = true
	}
	for name := range have {
		if wanted[name] {
			continue
		}
		for _, table := range []string{"doc", "section"} {
			w.queue("DELETE FROM @"+table+" WHERE tenant = $1 AND conv = $2 AND section = $3", w.tenant, w.conv, []byte(name))
		}
	}
	for _, s := range want {
		section := key(s.Name)
		digest, known := have[string(section)]
		if known && bytes.Equal(digest, s.Digest.Bytes()) {
			continue
		}
		w.queue(`INSERT INTO @section AS s (tenant, conv, section, digest) VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant, conv, section) DO UPDATE SET digest = $4`, w.tenant, w.conv, section, s.Digest.Bytes())
		if err := w.fill(ctx, s, section, known); err != nil {
			return err
		}
		if err := w.flushFull(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sections returns the digests of the sections that are indexed.
func (w *writer) sections(ctx context.Context) (map[string][]byte, error) {
	rows, err := w.tx.Query(ctx, w.db.sql("SELECT section, digest FROM @section WHERE tenant = $1 AND conv = $2"), w.tenant, w.conv)
	if err != nil {
		return nil, err
	}
	have := make(map[string][]byte)
	var section, digest []byte
	_, err = pgx.ForEachRow(rows, []any{&section, &digest}, func() error {
		have[string(section)] = bytes.Clone(digest)
		return nil
	})
	return have, err
}

// docs returns the digests of the messages of a section, by their places.
func (w *writer) docs(ctx context.Context, section []byte) (map[int][]byte, error) {
	// Queued statements may concern this section.
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	rows, err := w.tx.Query(ctx, w.db.sql("SELECT place, digest FROM @doc WHERE tenant = $1 AND conv = $2 AND section = $3"), w.tenant, w.conv, section)
	if err != nil {
		return nil, err
	}
	have := make(map[int][]byte)
	var place int
	var digest []byte
	_, err = pgx.ForEachRow(rows, []any{&place, &digest}, func() error {
		have[place] = bytes.Clone(digest)
		return nil
	})
	return have, err
}

// said returns the digests of the messages of another section.
func (w *writer) said(ctx context.Context, name string) (map[string]bool, error) {
	said := make(map[string]bool)
	if name == "" {
		return said, nil
	}
	docs, err := w.docs(ctx, key(name))
	for _, digest := range docs {
		said[string(digest)] = true
	}
	return said, err
}

// fill writes the messages of a section. A growing turn keeps its earlier ones.
func (w *writer) fill(ctx context.Context, s corpus.Section, section []byte, known bool) error {
	messages, err := s.Read(ctx)
	if err != nil {
		return err
	}
	have := make(map[int][]byte)
	if known {
		if have, err = w.docs(ctx, section); err != nil {
			return err
		}
	}
	said, err := w.said(ctx, s.Besides)
	if err != nil {
		return err
	}
	for place, m := range messages {
		d := corpus.NewDoc(m)
		old, indexed := have[place]
		delete(have, place)
		skip := said[string(d.Digest)] || d.Empty()
		if indexed && !skip && bytes.Equal(old, d.Digest) {
			continue
		}
		if indexed {
			w.removeDoc(section, place)
		}
		if skip {
			continue
		}
		w.stats.Messages++
		if err := w.insert(ctx, &d, s.Save, section, place); err != nil {
			return err
		}
		if err := w.flushFull(ctx); err != nil {
			return err
		}
	}
	for place := range have {
		w.removeDoc(section, place)
	}
	return nil
}

func (w *writer) removeDoc(section []byte, place int) {
	w.queue("DELETE FROM @doc WHERE tenant = $1 AND conv = $2 AND section = $3 AND place = $4", w.tenant, w.conv, section, place)
}

func (w *writer) insert(ctx context.Context, d *corpus.Doc, save uint64, section []byte, place int) error {
	num, err := w.number(ctx)
	if err != nil {
		return err
	}
	words := newVector(d)
	text := words.String(w.scope)
	w.bytes += len(d.Body) + len(text)
	w.queue(`INSERT INTO @doc (tenant, num, conv, section, place, digest, turn, message, role, kind, tool, tool_key, time, subagent, save, weight, exact, body, path, words)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20::text::tsvector)`,
		w.tenant, num, w.conv, section, place, d.Digest, d.Turn, []byte(d.ID), clean(string(d.Role)), clean(string(d.Kind)), []byte(d.Tool), []byte(strings.ToLower(d.Tool)),
		d.Time, []byte(d.Subagent), int64(save), d.Weight(save), words.exact, []byte(d.Body), []byte(d.Path), text)
	return nil
}

// clean removes what the database does not accept in text.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
