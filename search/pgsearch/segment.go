package pgsearch

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// segment is the words of the messages from start to finish. Segments are written once
// and never changed; their messages do not overlap. Small ones are merged, and those of
// which much is gone are rewritten without it.
type segment struct {
	seg, start, finish, docs int64
}

func (l *lease) queueSegment(b *pgx.Batch, s segment) {
	b.Queue(l.db.sql(`INSERT INTO @segment (tenant, seg, start, finish, docs) VALUES ($1, $2, $3, $4, $5)`), l.tenant, s.seg, s.start, s.finish, s.docs)
}

func (l *lease) queueBlock(b *pgx.Batch, seg int64, n int, blk block) {
	b.Queue(l.db.sql(`INSERT INTO @block (tenant, seg, first, block, data) VALUES ($1, $2, $3, $4, $5)`), l.tenant, seg, blk.first.slice(), n, blk.data)
}

// segments returns the segments in the order of their messages.
func (ix *Index) segments(ctx context.Context, q queries) ([]segment, error) {
	rows, err := q.Query(ctx, ix.db.sql(segmentsSQL), ix.tenant)
	if err != nil {
		return nil, err
	}
	return readSegments(rows)
}

const segmentsSQL = `SELECT seg, start, finish, docs FROM @segment WHERE tenant = $1 ORDER BY start, seg`

func readSegments(rows pgx.Rows) ([]segment, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s segment, err error) {
		err = row.Scan(&s.seg, &s.start, &s.finish, &s.docs)
		return s, err
	})
}

// Segments are merged mergeAt at a time, until they have maxDocs messages. A search reads
// each of them; because of merging their number grows logarithmically, and slowly above
// maxDocs.
var (
	mergeAt       = 6
	maxDocs int64 = 200_000
)

// tier is the size of a segment, as an exponent.
func tier(docs int64) (n int) {
	for ; docs > 256; docs /= int64(mergeAt) {
		n++
	}
	return n
}

// due returns the segments to merge: the latest ones, if there are enough of a size.
func due(all []segment) []segment {
	for t := 0; t <= tier(maxDocs); t++ {
		n, docs := 0, int64(0)
		for i := len(all) - 1; i >= 0 && tier(all[i].docs) <= t; i-- {
			n++
			docs += all[i].docs
		}
		if n >= mergeAt && docs <= 2*maxDocs {
			return all[len(all)-n:]
		}
	}
	return nil
}

// merge merges segments until none is due.
func (l *lease) merge(ctx context.Context) error {
	for {
		all, err := l.segments(ctx, l.db.pool)
		if err != nil {
			return err
		}
		some := due(all)
		if len(some) == 0 {
			return nil
		}
		if err := l.mergeSome(ctx, some); err != nil {
			return err
		}
	}
}

// tidyAt is the number of removed conversations from which the segments are examined.
var tidyAt int64 = 32

// tidy rewrites segments of which a quarter is gone.
func (l *lease) tidy(ctx context.Context) error {
	s, _, err := l.load(ctx, l.db.pool)
	if err != nil || s.dropped < tidyAt {
		return err
	}
	all, err := l.segments(ctx, l.db.pool)
	if err != nil {
		return err
	}
	for _, s := range all {
		var live int64
		err := l.db.pool.QueryRow(ctx, l.db.sql(`SELECT coalesce(sum(live), 0) FROM @run WHERE tenant = $1 AND num >= $2 AND num <= $3`),
			l.tenant, s.start/runSize, s.finish/runSize).Scan(&live)
		if err == nil && live*4 < s.docs*3 {
			err = l.mergeSome(ctx, []segment{s})
		}
		if err != nil {
			return err
		}
	}
	return l.change(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.db.sql(`UPDATE @tenant SET dropped = dropped - $2 WHERE tenant = $1`), l.tenant, s.dropped)
		return err
	})
}

// blocksAtOnce is how many blocks are read or written together.
const blocksAtOnce = 64

// cursor reads the entries of a segment in order.
type cursor struct {
	*lease
	segment
	entries []entry
	first   []byte // of the last block that was read
	block   int
	end     bool
}

// fill reads the next blocks if no entry is left.
func (c *cursor) fill(ctx context.Context) error {
	for len(c.entries) == 0 && !c.end {
		rows, err := c.db.pool.Query(ctx, c.db.sql(`SELECT first, block, data FROM @block WHERE tenant = $1 AND seg = $2 AND (first, block) > ($3, $4)
			ORDER BY first, block LIMIT $5`), c.tenant, c.seg, c.first, c.block, blocksAtOnce)
		if err != nil {
			return err
		}
		n := 0
		var first, data []byte
		var num int
		_, err = pgx.ForEachRow(rows, []any{&first, &num, &data}, func() error {
			n++
			c.first, c.block = append([]byte{}, first...), num
			entries, err := decodeBlock(data)
			c.entries = append(c.entries, entries...)
			return err
		})
		if err != nil {
			return err
		}
		c.end = n < blocksAtOnce
	}
	return nil
}

// mergeSome writes segments as one, without messages that are gone. Its blocks are not
// visible before the last step, which exchanges the segments.
func (l *lease) mergeSome(ctx context.Context, some []segment) error {
	live, err := l.live(ctx, some[0].start, some[len(some)-1].finish)
	if err != nil {
		return err
	}
	out := segment{seg: l.next, start: some[0].start, finish: some[len(some)-1].finish}
	l.next++
	cursors := make([]*cursor, len(some))
	for i, s := range some {
		cursors[i] = &cursor{lease: l, segment: s, first: []byte{}, block: -1}
		out.docs += s.docs
	}
	if n := int64(len(live)); n < out.docs {
		out.docs = n
	}
	n, b := 0, &pgx.Batch{}
	flush := func() error {
		if b.Len() == 0 {
			return nil
		}
		full := b
		b = &pgx.Batch{}
		return l.change(ctx, func(tx pgx.Tx) error { // which prolongs the lease
			return tx.SendBatch(ctx, full).Close()
		})
	}
	b.Queue(l.db.sql(`UPDATE @tenant SET next = $2 WHERE tenant = $1`), l.tenant, l.next) // the number is not used again
	made := &blocks{emit: func(blk block) error {
		l.queueBlock(b, out.seg, n, blk)
		if n++; b.Len() >= blocksAtOnce {
			return flush()
		}
		return nil
	}}
	for {
		var least *wordKey
		for _, c := range cursors {
			if err := c.fill(ctx); err != nil {
				return err
			}
			if len(c.entries) > 0 && (least == nil || c.entries[0].key.compare(*least) < 0) {
				least = &c.entries[0].key
			}
		}
		if least == nil {
			break
		}
		key, all := *least, lists{}
		for _, c := range cursors { // in the order of their messages
			for {
				if err := c.fill(ctx); err != nil {
					return err
				}
				if len(c.entries) == 0 || c.entries[0].key != key {
					break
				}
				err := decodeList(c.entries[0].data, c.start, func(p posting) {
					if live[p.doc] {
						all.add(out.start, p)
					}
				})
				if err != nil {
					return err
				}
				c.entries = c.entries[1:]
			}
		}
		for _, part := range all.parts {
			if err := made.add(entry{key, part.data}); err != nil {
				return err
			}
		}
	}
	if err := made.end(); err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	return l.change(ctx, func(tx pgx.Tx) error {
		gone := make([]int64, len(some))
		for i, s := range some {
			gone[i] = s.seg
		}
		b := &pgx.Batch{}
		b.Queue(l.db.sql(`DELETE FROM @segment WHERE tenant = $1 AND seg = ANY($2)`), l.tenant, gone)
		b.Queue(l.db.sql(`DELETE FROM @block WHERE tenant = $1 AND seg = ANY($2)`), l.tenant, gone)
		if n > 0 {
			l.queueSegment(b, out)
		}
		return tx.SendBatch(ctx, b).Close()
	})
}

// live returns the messages that are there.
func (l *lease) live(ctx context.Context, start, finish int64) (map[int64]bool, error) {
	rows, err := l.db.pool.Query(ctx, l.db.sql(`SELECT num, docs FROM @run WHERE tenant = $1 AND num >= $2 AND num <= $3`), l.tenant, start/runSize, finish/runSize)
	if err != nil {
		return nil, err
	}
	live := make(map[int64]bool)
	var num int64
	var data []byte
	_, err = pgx.ForEachRow(rows, []any{&num, &data}, func() error {
		r, err := decodeRun(num, nil, data)
		if err != nil {
			return err
		}
		for i := range r.docs {
			if !r.docs[i].gone {
				live[num*runSize+int64(i)] = true
			}
		}
		return nil
	})
	return live, err
}
