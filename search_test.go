package stet

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/search"
)

// elsewhere is an index that counts how often it is closed.
type elsewhere struct {
	search.Searcher
	closed int
}

func (e *elsewhere) Close() error {
	e.closed++
	return e.Searcher.Close()
}

func TestSearchKeptElsewhere(t *testing.T) {
	ring, err := keyring.Create(filepath.Join(t.TempDir(), KeyringName), keyring.Raw(bytes.Repeat([]byte{7}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	for name, ring := range map[string]*keyring.Ring{"plain": nil, "encrypted": ring} {
		t.Run(name, func(t *testing.T) {
			opened := &elsewhere{}
			mem := memblob.New()
			db, err := New(t.Context(), Backend{Blobs: mem, Rows: memkv.New(mem)}, ring, &Options{
				Search: func(ctx context.Context, c *conversation.Store, b blob.Store, r kv.Store) (search.Searcher, error) {
					index, err := search.Open(ctx, c, b, r, nil)
					opened.Searcher = index
					return opened, err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				index, err := db.Search(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				// The words of an encrypted store stay in its own memory.
				if got, want := index == search.Searcher(opened), ring == nil; got != want {
					t.Errorf("the index is kept elsewhere: %t, want %t", got, want)
				}
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			if want := map[bool]int{true: 1}[ring == nil]; opened.closed != want {
				t.Errorf("the index was closed %d times, want %d", opened.closed, want)
			}
		})
	}
}
