package page

import (
	"context"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
)

const (
	graphNodes    = 120 // of an answer, unless fewer are requested
	graphMost     = 500
	graphChildren = 24 // followed per node: a list of turns would crowd out the rest
)

// Graph walks down from a blob, nearest first. It shows missing and damaged blobs as
// such.
func (s *Service) Graph(ctx context.Context, req *stetv1.GraphRequest) (*stetv1.GraphResponse, error) {
	id, err := blob.IDFromBytes(req.GetId())
	if err != nil {
		return nil, err
	}
	kind, err := wire.ParseKind(req.GetKind())
	if err != nil {
		return nil, err
	}
	limit := int(req.GetLimit())
	if limit == 0 || limit > graphMost {
		limit = graphNodes
	}
	res := &stetv1.GraphResponse{}
	places := make(map[blob.ID]uint32)
	opts := &graph.LookOptions{Nearest: true, MaxBlobs: limit, MaxRefs: graphChildren, MaxBytes: wire.MaxUnary}
	res.Truncated, err = graph.Look(ctx, s.db.Blobs(), graph.Root{Kind: kind, ID: id}, opts, func(at *graph.Sight) error {
		place, seen := places[at.ID]
		if !seen {
			place = uint32(len(res.Nodes))
			places[at.ID] = place
			res.Nodes = append(res.Nodes, &stetv1.GraphNode{
				Id: at.ID.Bytes(), Kind: at.Kind.String(), Depth: uint32(at.Depth), Size: int64(at.Size), Refs: uint32(at.Refs), Error: at.Problem(),
			})
		}
		if at.Depth > 0 {
			res.Edges = append(res.Edges, &stetv1.GraphEdge{From: places[at.From], To: place, Field: at.Field})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.addStored(res)
	return res, nil
}

// addStored adds the stored sizes of the blobs that the last storage report has.
func (s *Service) addStored(res *stetv1.GraphResponse) {
	report := s.storage.Load()
	if report == nil {
		return
	}
	for _, n := range res.Nodes {
		if id, err := blob.IDFromBytes(n.GetId()); err == nil {
			n.Stored, _ = report.usage.Stored(id)
		}
	}
}
