package conversation

import (
	"context"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
)

// measure fills in Bytes. It walks the saves in reverse removal order and counts each
// blob for the first save that reaches it: the blob goes when that save is removed.
func (s *Store) measure(ctx context.Context, all []Retained, lister blob.Lister) error {
	stored := make(map[blob.ID]int64)
	err := lister.List(ctx, blob.ID{}, func(i blob.Info) error {
		stored[i.ID] = i.Stored
		return nil
	})
	if err != nil {
		return err
	}
	RemovalOrder(all)
	seen := new(graph.Set)
	counted := make(map[blob.ID]bool)
	for i := range slices.Backward(all) {
		root := graph.Root{Kind: graph.State, ID: all[i].Save.Root}
		err := graph.Walk(ctx, s.blobs, graph.Roots(root), &graph.Options{Seen: seen}, func(n graph.Node) error {
			if !counted[n.ID] { // it may be visited as several kinds
				counted[n.ID] = true
				all[i].Bytes += stored[n.ID]
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
