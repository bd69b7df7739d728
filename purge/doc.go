// Package purge removes content, such as a captured secret, from all of a store: from
// every checkpoint, conversation, row, pack and index, from the remote, and from the
// bytes that deleted data leaves in the store's files.
//
//	p := purge.New(stores)
//	plan, err := p.Find(ctx, purge.Target{Secrets: [][]byte{token}})
//	result, err := p.Remove(ctx, plan)
//	if n := result.Left(); n > 0 { … result.Remains says where … }
//
// It promises that afterwards no blob or row that can be read here holds the bytes,
// or that the result names where they are left. History is rewritten:
//
//   - A file that holds them is removed from the trees of checkpoints. Their lists of what
//     was not captured name it, so that a rewind leaves the path alone and says so.
//
//   - In conversations, in the logs of agents and in rows the bytes are replaced by as many
//     asterisks. Everything that names the changed blobs, up to heads, histories, pins and
//     operations, names the new ones.
//
//   - Sessions of agents from which such conversations were copied are cut off, so that no
//     import and no hook copies the bytes again from the agents' own records.
//
// Each change is one commit, new blobs before the rows that name them, and removal
// last: after a crash the store is intact, and the same purge can be run again.
// Writers may continue. One that holds an old state of a conversation fails as stale,
// and the check at the end finds what it wrote meanwhile.
//
// The caller decides which bytes are a secret; packages checkpoint, conversation and
// upkeep and the drivers change trees, histories and stored bytes.
package purge
