package pgsearch

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/search"
)

// runsAtOnce is how many runs are read together.
const runsAtOnce = 1024

// Joins with the wanted keys, because "= ANY" compares each row with all of them where the
// database has no statistics yet.
const (
	runsSQL  = `SELECT r.num, r.conv, r.docs FROM unnest($2::bigint[]) AS w (num) JOIN @run r ON r.tenant = $1 AND r.num = w.num`
	convsSQL = `SELECT c.conv, c.id, c.title, c.updated FROM unnest($2::bytea[]) AS w (conv) JOIN @conv c ON c.tenant = $1 AND c.conv = w.conv`
)

// admit adds the matching messages that pass the filters, as many as are ranked.
func (f *finder) admit(ctx context.Context, matches []matched) error {
	for len(matches) > 0 && len(f.ranked) < maxRanked {
		var nums []int64
		n := 0
		for ; n < len(matches) && (len(nums) < runsAtOnce || matches[n].doc/runSize == nums[len(nums)-1]); n++ {
			if num := matches[n].doc / runSize; len(nums) == 0 || nums[len(nums)-1] != num {
				nums = append(nums, num)
			}
		}
		runs, err := f.runs(ctx, runsSQL, nums)
		if err != nil {
			return err
		}
		byNum := make(map[int64]*run, len(runs))
		for _, r := range runs {
			byNum[r.num] = r
		}
		for _, m := range matches[:n] {
			r, i := byNum[m.doc/runSize], int(m.doc%runSize)
			if r == nil || i >= len(r.docs) || len(f.ranked) == maxRanked {
				continue
			}
			d := &r.docs[i]
			if f.wanted(d, f.convs[string(r.conv)]) {
				f.ranked = append(f.ranked, ranked{found{score(m, d), m.doc}, d, r.conv})
			}
		}
		matches = matches[n:]
	}
	return nil
}

// score is higher where phrases occur often in short messages.
func score(m matched, d *doc) (sum float64) {
	norm := 1.2 * (0.25 + 0.75*float64(d.length)/100)
	for _, often := range m.often {
		sum += often / (often + norm)
	}
	return sum * d.weight
}

// runs reads runs and, if filters or the order need them, the conversations.
func (f *finder) runs(ctx context.Context, sql string, arg any) ([]*run, error) {
	rows, err := f.tx.Query(ctx, f.db.sql(sql), f.tenant, arg)
	if err != nil {
		return nil, err
	}
	var runs []*run
	var convs [][]byte
	var num int64
	var conv, data []byte
	_, err = pgx.ForEachRow(rows, []any{&num, &conv, &data}, func() error {
		if f.opts.Conversation != "" && string(conv) != string(key(f.opts.Conversation)) {
			return nil
		}
		r, err := decodeRun(num, slices.Clone(conv), data)
		if err == nil {
			runs, convs = append(runs, r), append(convs, r.conv)
		}
		return err
	})
	if err != nil || f.opts.Since.IsZero() && !f.q.listing() {
		return runs, err
	}
	return runs, f.know(ctx, f.tx, convs)
}

// know reads what hits show of conversations. A missing one was removed.
func (f *finder) know(ctx context.Context, q batches, convs [][]byte) error {
	b := &pgx.Batch{}
	if f.queueConvs(b, convs); b.Len() == 0 {
		return nil
	}
	return q.SendBatch(ctx, b).Close()
}

// batches is a pool or a transaction.
type batches interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// queueConvs queues the statement that reads those conversations that are not known, if any.
func (f *finder) queueConvs(b *pgx.Batch, convs [][]byte) {
	var ask [][]byte
	asked := make(map[string]bool)
	for _, conv := range convs {
		if _, ok := f.convs[string(conv)]; !ok && !asked[string(conv)] {
			asked[string(conv)] = true
			ask = append(ask, conv)
		}
	}
	if len(ask) == 0 {
		return
	}
	b.Queue(f.db.sql(convsSQL), f.tenant, ask).Query(func(rows pgx.Rows) error {
		var conv, id, title []byte
		var updated int64
		_, err := pgx.ForEachRow(rows, []any{&conv, &id, &title, &updated}, func() error {
			f.convs[string(conv)] = convRow{string(id), string(title), updated}
			return nil
		})
		return err
	})
}

func convsOf(some []ranked) [][]byte {
	convs := make([][]byte, len(some))
	for i := range some {
		convs[i] = some[i].conv
	}
	return convs
}

// list finds messages by filters alone, the newest first.
func (f *finder) list(ctx context.Context) error {
	for below := int64(math.MaxInt64); len(f.ranked) < maxRanked; {
		sql, arg := `SELECT num, conv, docs FROM @run WHERE tenant = $1 AND num < $2 ORDER BY num DESC LIMIT 1024`, any(below)
		if f.opts.Conversation != "" {
			sql, arg = `SELECT num, conv, docs FROM @run WHERE tenant = $1 AND conv = $2 ORDER BY num DESC`, key(f.opts.Conversation)
		}
		runs, err := f.runs(ctx, sql, arg)
		if err != nil {
			return err
		}
		for _, r := range runs {
			below = r.num
			for i := range r.docs {
				d := &r.docs[i]
				if c, ok := f.convs[string(r.conv)]; ok && f.wanted(d, c) {
					f.ranked = append(f.ranked, ranked{found{float64(f.at(d, c)), r.num*runSize + int64(i)}, d, r.conv})
				}
			}
		}
		if len(runs) < runsAtOnce || f.opts.Conversation != "" {
			return nil
		}
	}
	return nil
}

// readers is how many texts are read at a time.
const readers = 8

// hits reads what is shown of messages. It returns nil for one that does not have the
// words after all.
func (f *finder) hits(ctx context.Context, some []ranked) ([]*search.Hit, error) {
	hits, errs := make([]*search.Hit, len(some)), make([]error, len(some))
	if err := f.know(ctx, f.db.pool, convsOf(some)); err != nil {
		return nil, err
	}
	byConv := make(map[string][]int)
	for i, r := range some {
		if _, ok := f.convs[string(r.conv)]; ok {
			byConv[string(r.conv)] = append(byConv[string(r.conv)], i)
		}
	}
	slots := make(chan struct{}, readers)
	var group sync.WaitGroup
	for _, of := range byConv {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f.read(ctx, some, of, hits, errs)
		})
	}
	group.Wait()
	return hits, errors.Join(errs...)
}

// read reads the messages of one conversation.
func (f *finder) read(ctx context.Context, some []ranked, of []int, hits []*search.Hit, errs []error) {
	c := f.convs[string(some[of[0]].conv)]
	texts, err := f.texts(ctx, c.id)
	for _, i := range of {
		r := some[i]
		h := &search.Hit{
			Conversation: c.id, Title: c.title, Turn: r.turn, MessageID: r.id, Role: r.role, Kind: r.kind, Tool: r.tool,
			Subagent: r.sub, Save: r.save, Score: r.score, Time: time.UnixMilli(f.at(r.doc, c)),
		}
		var body, path string
		readable := false
		if err == nil {
			body, path, readable, err = texts(ctx, r.doc)
		}
		switch {
		case err == nil && readable && !f.q.listing() && !f.q.holds(body, path):
			continue
		case err == nil && readable:
			h.Snippet = f.q.snippet(body, path)
		case errors.Is(err, conversation.ErrNotFound):
			continue // removed since
		case err != nil && !conversation.Damaged(err):
			errs[i] = err
		}
		hits[i] = h // changed or damaged since it was indexed: the place is shown without its text
	}
}

// texts returns a function that reads the texts of messages of a conversation.
func (f *finder) texts(ctx context.Context, id string) (func(context.Context, *doc) (body, path string, ok bool, err error), error) {
	info, err := f.source.Conversations.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	sections, _, err := f.source.Sections(ctx, info)
	if err != nil && !conversation.Damaged(err) {
		return nil, err
	}
	byKey := make(map[[8]byte]int, len(sections))
	for i, s := range sections {
		byKey[sectionKey(s.Name)] = i
	}
	return func(ctx context.Context, d *doc) (string, string, bool, error) {
		i, ok := byKey[d.section]
		if !ok {
			return "", "", false, nil
		}
		text, ok, err := sections[i].Text(ctx, d.place)
		if err != nil || !ok || [8]byte(text.Digest[:8]) != d.digest {
			return "", "", false, err
		}
		return text.Body, text.Path, true, nil
	}, nil
}
