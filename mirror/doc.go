// Package mirror keeps a copy of a store's blobs at a remote, and still knows after a
// restart what the remote lacks.
//
//	store := mirror.New(local, arrivals, mirror.Remote{Name: url, Blobs: remote}, nil)
//	store.Attach(rows)
//	err := store.Put(ctx, b)               // local has it; it is on its way
//	sent, err := store.Send(ctx, nil)      // the remote has everything
//	left, err := store.Backlog(ctx, 1000)  // what it lacks, as far as this store knows
//
// Put and Get are those of package writethrough: a blob is local at once and sent soon
// after, and a blob that the local store lost is fetched back. An unreachable remote
// neither slows down nor fails a write.
//
// A mark in the rows records how far blobs were sent: every blob that the remote may lack
// arrived after it (see blob.Arrivals). Send goes through these in the order of arrival,
// queries which of them the remote lacks, sends those, and moves the mark once the remote
// has them for good. So no blob is left out, whichever process stored it and however that
// process ended. A blob may be queried more than once, for example after it was
// compressed.
//
// A blob with LocalOnly is named in a row before it is stored, and never sent; one that
// is later put without the flag is.
//
// The other side of a mirror is Keep: it protects the blobs of other stores from the
// collector, which removes what no row refers to. Nothing but [Store.Remove] removes
// blobs from a remote.
package mirror
