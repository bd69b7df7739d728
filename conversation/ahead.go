package conversation

import (
	"context"
	"sync"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
)

// ahead describes conversations in order and reads the next ones concurrently: a database
// answers concurrent reads in one round trip.
type ahead struct {
	s    *Store
	ctx  context.Context // of the one call that lists
	keys []string        // the last part of each is the id
	size int             // how many are read at once

	infos []Info
	errs  []error
}

// maxAhead limits how many conversations are read at once.
const maxAhead = 64

// getAhead begins to describe conversations, some of which the caller probably needs.
func (s *Store) getAhead(ctx context.Context, keys []string, some int) *ahead {
	return &ahead{s: s, ctx: ctx, keys: keys, size: min(max(some, 1), maxAhead)}
}

// next describes the next conversation.
func (a *ahead) next() (Info, error) {
	if len(a.infos) == 0 {
		a.read()
	}
	info, err := a.infos[0], a.errs[0]
	a.infos, a.errs = a.infos[1:], a.errs[1:]
	return info, err
}

func (a *ahead) read() {
	n := min(a.size, len(a.keys))
	a.infos, a.errs = make([]Info, n), make([]error, n)
	if n == 1 {
		a.infos[0], a.errs[0] = a.s.Get(a.ctx, keyspace.Last(a.keys[0]))
	} else {
		var work sync.WaitGroup
		recs, saves, saveErrs := make([]*stetv1.ConversationRecord, n), make([]Save, n), make([]error, n)
		for i, key := range a.keys[:n] {
			work.Go(func() { recs[i], _, a.errs[i] = a.s.record(a.ctx, keyspace.Last(key)) })
			work.Go(func() { saves[i], saveErrs[i] = a.s.lastSave(a.ctx, keyspace.Last(key)) })
		}
		work.Wait()
		for i, rec := range recs {
			if a.errs[i] == nil {
				a.errs[i] = saveErrs[i]
			}
			if a.errs[i] == nil {
				a.infos[i] = infoOf(rec, saves[i])
			}
		}
	}
	a.keys = a.keys[n:]
}
