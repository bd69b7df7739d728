// Package workspace captures a directory tree as content.
//
// [Scan] walks a directory, reads what changed since the last scan and stores
// it: a file is a blob (or a list of chunks), a directory is a node, a small
// blob that names its entries. The id of the root node names the whole tree, so
// equal trees have equal ids and unchanged directories are stored once.
//
//	res, err := workspace.Scan(ctx, store, "/src/shop", nil, nil)
//	// … an agent works …
//	next, err := workspace.Scan(ctx, store, "/src/shop", res.Index, nil)
//	for _, c := range next.Changed {
//		fmt.Println(c.Op(), c.Path)
//	}
//
// What the package promises:
//
//   - Names are raw bytes, modes, symbolic links, binary files and empty
//     directories are content. What is not captured is named in
//     [Result.NotCaptured] with the reason.
//   - A file that changes while it is read is read again; a mixture of two
//     versions is never part of a tree. Where somebody has the file open for
//     writing, or mapped, two equal readings have to do, and every scan reads it
//     again until that has ended: one long write() and stores through a mapping
//     move no time stamp.
//   - .git is never captured, in any spelling and at any depth, and nothing
//     outside the root is read, also while directories turn into links.
//   - The index only saves time. A lost, damaged or outdated one costs a longer
//     scan and never a wrong tree.
//
// Scan stores blobs but does not flush them: the commit that names the tree, or
// Store.Flush, makes them durable. Which trees to keep, what belongs to whom and
// how to bring a tree back to disk is left to the callers.
package workspace
