package page

import (
	"context"
	"errors"

	"connectrpc.com/connect"

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

// graphStep is a blob still to visit.
type graphStep struct {
	ref   graph.Ref
	depth uint32
	from  int // place of the node that refers to it; -1 for the first
}

// Graph walks down from a blob, nearest first. It shows missing and damaged blobs as
// such.
func (s *Service) Graph(ctx context.Context, req *connect.Request[stetv1.GraphRequest]) (*connect.Response[stetv1.GraphResponse], error) {
	id, err := blob.IDFromBytes(req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	kind, err := wire.ParseKind(req.Msg.GetKind())
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetLimit())
	if limit == 0 || limit > graphMost {
		limit = graphNodes
	}
	res := &stetv1.GraphResponse{}
	places := make(map[blob.ID]int)
	for todo := []graphStep{{graph.Ref{Kind: kind, ID: id}, 0, -1}}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		place, seen := places[at.ref.ID]
		if !seen {
			if len(res.Nodes) == limit {
				res.Truncated = true
				continue
			}
			place = len(res.Nodes)
			places[at.ref.ID] = place
			node, refs, err := s.node(ctx, at)
			if err != nil {
				return nil, err
			}
			res.Nodes = append(res.Nodes, node)
			for i, r := range refs {
				if i == graphChildren {
					res.Truncated = true
					break
				}
				todo = append(todo, graphStep{r, at.depth + 1, place})
			}
		}
		if at.from >= 0 {
			res.Edges = append(res.Edges, &stetv1.GraphEdge{From: uint32(at.from), To: uint32(place), Field: at.ref.Field})
		}
	}
	s.addStored(res)
	return connect.NewResponse(res), nil
}

// node reads a blob and its references.
func (s *Service) node(ctx context.Context, at graphStep) (*stetv1.GraphNode, []graph.Ref, error) {
	node := &stetv1.GraphNode{Id: at.ref.ID.Bytes(), Kind: at.ref.Kind.String(), Depth: at.depth}
	r, err := blob.Open(ctx, s.db.Blobs(), at.ref.ID)
	var data []byte
	if err == nil {
		data, err = wire.ReadMessage(r, at.ref.ID)
	}
	switch {
	case errors.Is(err, blob.ErrTooLarge):
		node.Error = "too large to show"
		return node, nil, nil
	case errors.Is(err, blob.ErrNotFound):
		node.Error = "missing"
		return node, nil, nil
	case errors.Is(err, blob.ErrCorrupt):
		node.Error = "damaged"
		return node, nil, nil
	case err != nil:
		return nil, nil, err
	}
	node.Size = int64(len(data))
	refs, err := graph.Refs(at.ref.Kind, data)
	if err != nil {
		node.Error = "not a " + at.ref.Kind.String()
	}
	node.Refs = uint32(len(refs))
	return node, refs, nil
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
