package server

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/server/internal/wire"
)

// Search brings the index up to date first, so that the latest saves are found.
func (s *conversationService) Search(ctx context.Context, req *connect.Request[stetv1.SearchRequest]) (*connect.Response[stetv1.SearchResponse], error) {
	index, err := s.db.Search(ctx)
	if err != nil {
		return nil, err
	}
	updated, err := index.Update(ctx)
	if err != nil {
		return nil, err
	}
	return wire.Fitting(req.Msg.GetPage().GetLimit(), func(limit int) (*stetv1.SearchResponse, error) {
		page, err := index.Search(ctx, req.Msg.GetQuery(), &search.SearchOptions{
			Limit: limit, Cursor: req.Msg.GetPage().GetCursor(), Conversation: req.Msg.GetConversation(),
		})
		if errors.Is(err, search.ErrEmptyQuery) || errors.Is(err, search.ErrInvalidCursor) {
			return nil, connect.NewError(connect.CodeInvalidArgument, err)
		}
		if err != nil {
			return nil, err
		}
		res := &stetv1.SearchResponse{NextCursor: page.Next}
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
