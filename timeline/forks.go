package timeline

import (
	"context"

	"github.com/stet-dev/stet/conversation"
)

// forkPages bounds the search for forks to the newest 10,000 conversations.
const forkPages, forkPage = 20, 500

// Forks lists the conversations that began as a fork of another one, newest first.
func (r *Reader) Forks(ctx context.Context, id string) ([]conversation.Info, error) {
	var out []conversation.Info
	opts := &conversation.ListOptions{Limit: forkPage}
	for range forkPages {
		page, err := r.conversations.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		for _, info := range page.Conversations {
			if info.ForkedFrom == id {
				out = append(out, info)
			}
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			break
		}
	}
	return out, nil
}
