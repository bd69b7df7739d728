package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation/graph"
)

// inside and named wrap a state as a subagent of another one.
func inside(data []byte) []byte { return field(16, field(2, field(1, data))) }

func named(t *testing.T, blobs blob.Store, data []byte) []byte {
	t.Helper()
	b := blob.New(data)
	if err := blobs.Put(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	id := b.ID
	return field(31, append(field(1, []byte("s")), field(2, id[:])...))
}

func TestNestingCountsStatesInsideAndByReference(t *testing.T) {
	ctx := context.Background()
	blobs := memblob.New()
	wrap := map[string]func(int, []byte) []byte{
		"inside": func(_ int, d []byte) []byte { return inside(d) },
		"named":  func(_ int, d []byte) []byte { return named(t, blobs, d) },
		"in turns": func(n int, d []byte) []byte {
			if n%2 == 0 {
				return inside(d)
			}
			return named(t, blobs, d)
		},
		"with short ones before": func(_ int, d []byte) []byte {
			return append(named(t, blobs, field(8, id(3))), named(t, blobs, d)...)
		},
		"two paths": func(_ int, d []byte) []byte { // 2 to the power of 32 in all
			return append(named(t, blobs, d), named(t, blobs, d)...)
		},
	}
	for name, wrap := range wrap {
		t.Run(name, func(t *testing.T) {
			data := field(8, id(1))
			for n := range graph.MaxNested {
				data = wrap(n, data)
			}
			shared := new(graph.Nesting)
			for range 2 { // measured, and remembered
				if err := shared.Check(ctx, blobs.Get, graph.State, data); err != nil {
					t.Errorf("%d nested: %v", graph.MaxNested, err)
				}
			}
			deeper := wrap(graph.MaxNested, data)
			for _, n := range []*graph.Nesting{shared, new(graph.Nesting)} {
				if err := n.Check(ctx, blobs.Get, graph.State, deeper); !errors.Is(err, graph.ErrTooDeep) {
					t.Errorf("%d nested: %v, want ErrTooDeep", graph.MaxNested+1, err)
				}
			}
		})
	}
}

// A chain of a thousand is refused before it is read, and walked to its end by
// those who must find everything.
func TestWalkReportsALongChainAndFollowsIt(t *testing.T) {
	ctx := context.Background()
	blobs := memblob.New()
	data := field(8, id(1))
	for range 1000 {
		data = named(t, blobs, data)
	}
	root := blob.New(data)
	if err := blobs.Put(ctx, root); err != nil {
		t.Fatal(err)
	}
	reads := 0
	counting := func(ctx context.Context, id blob.ID) ([]byte, error) { reads++; return blobs.Get(ctx, id) }
	if err := new(graph.Nesting).Check(ctx, counting, graph.State, data); !errors.Is(err, graph.ErrTooDeep) || reads > graph.MaxNested {
		t.Errorf("check read %d states: %v, want ErrTooDeep after %d", reads, err, graph.MaxNested)
	}
	for _, limit := range []*graph.Nesting{nil, new(graph.Nesting)} {
		visited, deep := 0, 0
		err := graph.Walk(ctx, blobs, graph.Roots(graph.Root{Kind: graph.State, ID: root.ID}), &graph.Options{Nesting: limit}, func(n graph.Node) error {
			visited++
			if errors.Is(n.Err, graph.ErrTooDeep) {
				deep++
			}
			return nil
		})
		want := "1002 0"
		if limit != nil {
			want = fmt.Sprint(1002, 1000-graph.MaxNested)
		}
		if got := fmt.Sprint(visited, " ", deep); err != nil || got != want {
			t.Errorf("visited and too deep: %s, %v, want %s", got, err, want)
		}
	}
}

func TestNestingSaysWhyAStateCannotBeRead(t *testing.T) {
	ctx := context.Background()
	blobs := memblob.New()
	data := named(t, blobs, field(8, id(1)))
	broken := errors.New("for a test")
	for _, err := range []error{broken, blob.NotFound(blob.ID{})} {
		got := new(graph.Nesting).Check(ctx, func(context.Context, blob.ID) ([]byte, error) { return nil, err }, graph.State, data)
		if want := errors.Is(err, broken); errors.Is(got, broken) != want || !want && got != nil {
			t.Errorf("with %v: %v", err, got)
		}
	}
}
