package server

import (
	"context"
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/server/internal/wire"
)

// longUpdate is the number of outdated conversations above which a search does not
// wait for the update.
const longUpdate = 500

// updateLooks is how often a waiting search checks how many are left.
const updateLooks = 250 * time.Millisecond

// upToDate updates an index. If that takes long, as it does the first time, it
// returns the progress instead, and the update continues after the call.
func upToDate(ctx context.Context, index search.Searcher) (search.Stats, *stetv1.IndexProgress, error) {
	long := func() *stetv1.IndexProgress {
		if done, total := index.Progress(); total-done > longUpdate {
			return &stetv1.IndexProgress{Done: uint32(done), Total: uint32(total)}
		}
		return nil
	}
	if progress := long(); progress != nil { // it would only wait for that one
		return search.Stats{}, progress, nil
	}
	type result struct {
		search.Stats
		error
	}
	updated := make(chan result, 1)
	go func() {
		stats, err := index.Update(context.WithoutCancel(ctx))
		updated <- result{stats, err}
	}()
	for {
		select {
		case r := <-updated:
			return r.Stats, nil, r.error
		case <-ctx.Done():
			return search.Stats{}, nil, ctx.Err()
		case <-time.After(updateLooks):
		}
		if progress := long(); progress != nil {
			return search.Stats{}, progress, nil
		}
	}
}

// Search brings the index up to date first, so that the latest saves are found.
func (s *conversationService) Search(ctx context.Context, req *stetv1.SearchRequest) (*stetv1.SearchResponse, error) {
	index, err := s.db.Search(ctx)
	if err != nil {
		return nil, err
	}
	updated, indexing, err := upToDate(ctx, index)
	if err != nil {
		return nil, err
	}
	return wire.Fitting(req.GetPage().GetLimit(), func(limit int) (*stetv1.SearchResponse, error) {
		page, err := index.Search(ctx, req.GetQuery(), &search.SearchOptions{
			Limit: limit, Cursor: req.GetPage().GetCursor(), Conversation: req.GetConversation(),
		})
		if err != nil {
			return nil, err
		}
		res := &stetv1.SearchResponse{NextCursor: page.Next, Indexing: indexing}
		for _, id := range updated.Damaged {
			res.Damaged = append(res.Damaged, wire.Valid(id))
		}
		for _, h := range page.Hits {
			hit := &stetv1.SearchHit{
				Conversation: h.Conversation, Title: h.Title, Turn: uint32(h.Turn), MessageId: h.MessageID,
				Role: string(h.Role), Kind: string(h.Kind), Tool: wire.Valid(h.Tool), Snippet: h.Snippet.Text, TimeMs: h.Time.UnixMilli(),
			}
			for _, m := range h.Snippet.Matches {
				hit.Matches = append(hit.Matches, uint32(m.Start), uint32(m.End))
			}
			res.Hits = append(res.Hits, hit)
		}
		return res, nil
	})
}
