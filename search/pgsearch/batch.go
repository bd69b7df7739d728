package pgsearch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/internal/corpus"
)

// A batch of conversations is read first and then written in one short transaction. It
// is limited by number, by the bytes of new texts, and by time, within which the lease
// must be prolonged.
const (
	batchBytes = 8 << 20
	batchTime  = 5 * time.Second
)

var batchConversations = 64

// known is what the index has about a conversation.
type known struct {
	there    bool
	title    string
	updated  int64
	sections sections
	runs     []*run
}

// update is the change of one conversation.
type update struct {
	pending
	conv []byte
	old  *known
	// gone means that nothing of the conversation is kept.
	gone     bool
	title    string
	updated  int64
	sections sections
	touched  map[*run]bool // runs with removed messages
	fresh    []*run
	stats    search.Stats
}

// same reports whether there is nothing to write.
func (u *update) same() bool {
	if u.gone {
		return !u.old.there && len(u.old.runs) == 0
	}
	if !u.old.there || u.title != u.old.title || u.updated != u.old.updated || len(u.fresh)+len(u.touched) > 0 || len(u.sections) != len(u.old.sections) {
		return false
	}
	for k, d := range u.sections {
		if u.old.sections[k] != d {
			return false
		}
	}
	return true
}

// index brings the index up to date with some conversations, as many at a time as one
// transaction should have. A conversation that cannot be read for a reason other than
// damage does not hold up the others: its error is returned with did.
func (l *lease) index(ctx context.Context, batch []pending, stats *search.Stats) (did bool, failed error) {
	l.total.Add(int64(len(batch)))
	if len(batch) == 0 { // the end of a walk
		return true, l.change(ctx, func(tx pgx.Tx) error { return l.note(ctx, tx) })
	}
	for len(batch) > 0 {
		n, err := l.some(ctx, batch, stats, &failed)
		if err != nil {
			return false, errors.Join(failed, err)
		}
		l.done.Add(int64(n))
		batch = batch[n:]
	}
	return true, failed
}

// some indexes the first conversations of a batch, and returns how many.
func (l *lease) some(ctx context.Context, batch []pending, stats *search.Stats, failed *error) (n int, err error) {
	have, err := l.known(ctx, batch)
	if err != nil {
		return 0, err
	}
	words := newBuilder(l.salt)
	var updates []*update
	began := time.Now()
	for n < len(batch) && (n == 0 || words.bytes < batchBytes && time.Since(began) < batchTime) {
		p := batch[n]
		n++
		u := &update{pending: p, conv: key(p.id), old: have[string(key(p.id))]}
		err := l.read(ctx, u, words)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			*failed = errors.Join(*failed, fmt.Errorf("conversation %s: %w", p.id, err))
			if p.version == 0 { // for the next update
				if err := l.source.Conversations.Changed(ctx, p.id); err != nil {
					return 0, err
				}
			}
			continue
		}
		updates = append(updates, u)
	}
	written, err := l.write(ctx, updates, words, n == len(batch))
	if err != nil {
		return 0, err
	}
	seen := make([]pending, 0, len(written))
	for _, u := range written {
		seen = append(seen, u.pending)
		stats.Conversations += u.stats.Conversations
		stats.Removed += u.stats.Removed
		stats.Messages += u.stats.Messages
		stats.Damaged = append(stats.Damaged, u.stats.Damaged...)
	}
	if err := l.source.Seen(ctx, versionsOf(seen)); err != nil {
		return 0, err
	}
	return n, l.merge(ctx)
}

// known reads what the index has about conversations.
func (l *lease) known(ctx context.Context, batch []pending) (map[string]*known, error) {
	have := make(map[string]*known, len(batch))
	var convs [][]byte
	for _, p := range batch {
		k := key(p.id)
		have[string(k)] = &known{sections: sections{}}
		convs = append(convs, k)
	}
	rows, err := l.db.pool.Query(ctx, l.db.sql(`SELECT conv, title, updated, sections FROM @conv WHERE tenant = $1 AND conv = ANY($2)`), l.tenant, convs)
	if err != nil {
		return nil, err
	}
	var conv, title, data []byte
	var num, updated int64
	_, err = pgx.ForEachRow(rows, []any{&conv, &title, &updated, &data}, func() (err error) {
		k := have[string(conv)]
		k.there, k.title, k.updated = true, string(title), updated
		k.sections, err = decodeSections(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	rows, err = l.db.pool.Query(ctx, l.db.sql(`SELECT num, conv, docs FROM @run WHERE tenant = $1 AND conv = ANY($2)`), l.tenant, convs)
	if err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&num, &conv, &data}, func() error {
		r, err := decodeRun(num, append([]byte{}, conv...), data)
		if err == nil {
			have[string(conv)].runs = append(have[string(conv)].runs, r)
		}
		return err
	})
	return have, err
}

// read finds out what changes in one conversation.
func (l *lease) read(ctx context.Context, u *update, words *builder) error {
	info, err := l.source.Conversations.Get(ctx, u.id)
	if conversation.Damaged(err) { // the indexed part can still be found
		u.stats.Damaged = []string{u.id}
		u.title, u.updated, u.sections = u.old.title, u.old.updated, u.old.sections
		u.gone = !u.old.there
		return nil
	}
	if errors.Is(err, conversation.ErrNotFound) {
		u.gone = true
	} else if err != nil {
		return err
	} else if l.mode == On && l.Packed != nil {
		if u.gone, err = l.Packed(ctx, u.id); err != nil {
			return err
		}
	}
	if u.gone {
		if u.old.there {
			u.stats.Removed = 1
		}
		return nil
	}
	u.title, u.updated, u.sections, u.touched = info.Title, info.Updated.UnixMilli(), make(sections), make(map[*run]bool)
	want, _, err := l.source.Sections(ctx, info)
	if conversation.Damaged(err) {
		u.stats.Damaged = []string{u.id}
		err = nil
	}
	if err != nil {
		return err
	}
	if err := l.sync(ctx, u, want, words); err != nil {
		return err
	}
	if !u.same() {
		u.stats.Conversations = 1
	}
	return nil
}

// spot is a place in a section.
type spot struct {
	section [8]byte
	place   int
}

// sync compares the wanted sections with those that the index has.
func (l *lease) sync(ctx context.Context, u *update, want []corpus.Section, words *builder) error {
	type at struct {
		*run
		doc *doc
	}
	have := make(map[spot]at)
	for _, r := range u.old.runs {
		for i := range r.docs {
			if d := &r.docs[i]; !d.gone {
				have[spot{d.section, d.place}] = at{r, d}
			}
		}
	}
	kept := make(map[[8]byte]map[[8]byte]bool) // digests by section
	keep := func(section, digest [8]byte) {
		if kept[section] == nil {
			kept[section] = make(map[[8]byte]bool)
		}
		kept[section][digest] = true
	}
	byOld := make(map[[8]byte][]spot)
	for s := range have {
		byOld[s.section] = append(byOld[s.section], s)
	}
	for _, s := range want {
		section := sectionKey(s.Name)
		digest := [8]byte(s.Digest.Bytes()[:8])
		u.sections[section] = digest
		if before, ok := u.old.sections[section]; ok && before == digest {
			for _, s := range byOld[section] {
				keep(section, have[s].doc.digest)
				delete(have, s)
			}
			continue
		}
		messages, err := s.Read(ctx)
		if err != nil {
			return err
		}
		said := map[[8]byte]bool(nil)
		if s.Besides != "" {
			said = kept[sectionKey(s.Besides)]
		}
		for place, m := range messages {
			d := corpus.NewDoc(m)
			if d.Empty() || said[[8]byte(d.Digest[:8])] {
				continue
			}
			keep(section, [8]byte(d.Digest[:8]))
			where := spot{section, place}
			if old, ok := have[where]; ok && old.doc.digest == [8]byte(d.Digest[:8]) {
				delete(have, where)
				continue
			}
			l.add(u, newDoc(&d, section, place, s.Save), &d, words)
		}
	}
	for _, old := range have { // no longer wanted
		old.doc.gone = true
		u.touched[old.run] = true
	}
	return nil
}

// add gives a message a number.
func (l *lease) add(u *update, d doc, text *corpus.Doc, words *builder) {
	last := len(u.fresh) - 1
	if last < 0 || len(u.fresh[last].docs) == runSize {
		u.fresh = append(u.fresh, &run{num: l.next, conv: u.conv})
		l.next++
		last++
	}
	r := u.fresh[last]
	d.length = words.add(r.num*runSize+int64(len(r.docs)), text.Body, text.Path)
	r.docs = append(r.docs, d)
	u.stats.Messages++
}

// write writes a batch: the conversations, their messages, and a segment with the words.
// A conversation that was changed or removed since it was read is left to the next
// update; none can change in between, because transactions that remove conversations wait
// for the row of the tenant. It returns those that are up to date.
func (l *lease) write(ctx context.Context, updates []*update, words *builder, last bool) (written []*update, err error) {
	err = l.change(ctx, func(tx pgx.Tx) error {
		written = nil
		b := &pgx.Batch{}
		q := func(sql string, args ...any) { b.Queue(l.db.sql(sql), append([]any{l.tenant}, args...)...) }
		for _, u := range updates {
			version, err := l.version(ctx, u.id)
			if err != nil {
				return err
			}
			if version != u.version {
				continue
			}
			written = append(written, u)
			if u.same() {
				continue
			}
			if u.gone {
				q("DELETE FROM @run WHERE tenant = $1 AND conv = $2", u.conv)
				q("DELETE FROM @conv WHERE tenant = $1 AND conv = $2", u.conv)
				q("UPDATE @tenant SET dropped = dropped + 1 WHERE tenant = $1")
				continue
			}
			q(`INSERT INTO @conv (tenant, conv, id, title, updated, sections) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (tenant, conv) DO UPDATE SET title = excluded.title, updated = excluded.updated, sections = excluded.sections`,
				u.conv, []byte(u.id), []byte(u.title), u.updated, u.sections.encode())
			for r := range u.touched {
				if live := r.live(); live == 0 {
					q("DELETE FROM @run WHERE tenant = $1 AND num = $2", r.num)
				} else {
					q("UPDATE @run SET live = $3, docs = $4 WHERE tenant = $1 AND num = $2", r.num, live, r.encode())
				}
			}
			for _, r := range u.fresh {
				q("INSERT INTO @run (tenant, num, conv, live, docs) VALUES ($1, $2, $3, $4, $5)", r.num, r.conv, r.live(), r.encode())
			}
		}
		if words.docs > 0 {
			seg := l.next
			l.next++
			l.queueSegment(b, segment{seg: seg, start: words.start, finish: words.last, docs: int64(words.docs)})
			n := 0
			if err := words.write(func(blk block) error {
				l.queueBlock(b, seg, n, blk)
				n++
				return nil
			}); err != nil {
				return err
			}
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if !last { // a walk has not got that far yet
			_, err := tx.Exec(ctx, l.db.sql(`UPDATE @tenant SET next = $2 WHERE tenant = $1`), l.tenant, l.next)
			return err
		}
		return l.note(ctx, tx)
	})
	return written, err
}
