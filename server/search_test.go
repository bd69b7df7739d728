package server_test

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/server"
)

// building is an index that an update fills for as long as the test wants.
type building struct {
	search.Searcher
	done, total int
	updates     chan struct{} // gets a value for each update
	end         chan struct{}
}

func (b *building) Progress() (done, total int) { return b.done, b.total }

func (b *building) Update(context.Context, ...string) (search.Stats, error) {
	b.updates <- struct{}{}
	<-b.end
	return search.Stats{Conversations: 3}, nil
}

func TestSearchDoesNotWaitForALongUpdate(t *testing.T) {
	ix := &building{done: 10, total: 100_000, updates: make(chan struct{}, 2), end: make(chan struct{})}
	_, progress, err := server.UpToDate(t.Context(), ix)
	if err != nil || progress.GetDone() != 10 || progress.GetTotal() != 100_000 || len(ix.updates) != 0 {
		t.Errorf("while another updates: %v, %v, %d updates", progress, err, len(ix.updates))
	}
	// Of its own update it waits for a few conversations only.
	small := &building{updates: make(chan struct{}, 2), end: make(chan struct{})}
	close(small.end)
	stats, progress, err := server.UpToDate(t.Context(), small)
	if err != nil || progress != nil || stats.Conversations != 3 {
		t.Errorf("got %v, %v, %v", stats, progress, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	slow := &building{updates: make(chan struct{}, 2), end: make(chan struct{})}
	go func() {
		<-slow.updates
		cancel()
	}()
	if _, _, err := server.UpToDate(ctx, slow); err == nil {
		t.Error("a call that has ended still waits")
	}
	close(slow.end)
}
