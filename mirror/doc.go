// Package mirror keeps a copy of a store's blobs at a remote place, and knows after a
// restart what the remote still lacks.
//
//	store := mirror.New(local, arrivals, mirror.Remote{Name: url, Blobs: remote}, nil)
//	store.Attach(rows)
//	err := store.Put(ctx, b)               // local has it; it is on its way
//	sent, err := store.Send(ctx, nil)      // the remote has everything
//	left, err := store.Backlog(ctx, 1000)  // what it lacks, by what this store knows
//
// Put and Get are those of package writethrough: a blob is local at once and sent soon
// after, and a blob that the local store lost is fetched back. A remote that is away
// neither slows a write down nor fails it.
//
// What was sent is a mark in the rows, behind which all blobs arrived that the remote may
// lack (see blob.Arrivals). Send goes through them in the order of arrival, asks the
// remote which it lacks, sends these, and moves the mark when the remote has them for
// good. So nothing is left out, whichever process stored it and however that ended. A
// blob may be asked for more than once, for example after it was compressed.
//
// A blob with LocalOnly is named in a row before it is stored, and never sent; one that
// is later put without the flag is.
//
// The other side of a mirror is Keep: it holds the blobs of others against the
// collector, which removes what no row refers to. Nothing is ever removed from a remote.
package mirror
