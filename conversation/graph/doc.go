// Package graph knows which bytes of a stored message are ids of other blobs.
//
// The knowledge is one table, Edges: message type, field number, what the field
// points at. Hydration, transfer, collection and checking all use it, so that
// none of them can forget an edge that another one follows. The table is applied
// to raw wire bytes; fields that it does not name, known to us or not, are
// stepped over.
//
//	refs, err := graph.Refs(graph.State, rootBytes)
//	for _, r := range refs {
//		fmt.Println(r.Field, r.Kind, r.ID)
//	}
//
// Walk follows the table through a blob store, in parallel, each blob once. What
// to do about a blob that is missing or damaged is left to the caller.
package graph
