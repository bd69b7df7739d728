// Package graph defines which bytes of a stored message are ids of other blobs.
//
// One table, Edges, defines them: message type, field number, target of the field.
// Hydration, transfer, collection and checking all use it, so none of them can miss
// an edge that another follows. The table is applied to raw wire bytes; other fields,
// known or not, are skipped.
//
//	refs, err := graph.Refs(graph.State, rootBytes)
//	for _, r := range refs {
//		fmt.Println(r.Field, r.Kind, r.ID)
//	}
//
// Walk follows the table through a blob store, in parallel, each blob once. Handling
// missing or damaged blobs is left to the caller.
package graph
