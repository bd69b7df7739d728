// Package purge removes content from a store everywhere, for the day on which a secret
// was captured: from every checkpoint, conversation, row, pack and index, from the
// remote, and from the bytes of the store's files that deleted data leaves behind.
//
//	p := purge.New(stores)
//	plan, err := p.Find(ctx, purge.Target{Secrets: [][]byte{token}})
//	result, err := p.Remove(ctx, plan)
//	if n := result.Left(); n > 0 { … result.Remains says where … }
//
// It promises that afterwards no blob and no row that can be read here holds the bytes,
// or that the result names where they are left. History is rewritten:
//
//   - A file that holds them is removed from the trees of checkpoints. Their lists of what
//     was not captured name it, so that a rewind leaves the path alone and says so.
//   - In conversations, in the logs of agents and in rows the bytes are replaced by as many
//     asterisks. Everything that names the changed blobs, up to heads, histories, pins and
//     operations, names the new ones.
//
// Each change is one commit, new blobs before the rows that name them, and removal last:
// after a crash the store is whole, and the same purge can be run again. Writers may go
// on. One that holds an old state of a conversation fails as stale, and what it wrote
// meanwhile is found by the check at the end.
//
// It leaves to its caller which bytes are a secret, and to other packages how trees,
// histories and stored bytes are changed: checkpoint, conversation, upkeep and the drivers.
package purge
