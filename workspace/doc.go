// Package workspace captures a directory tree as content.
//
// [Scan] walks a directory, reads what has changed since the last scan and stores it:
// a file is a blob (or a list of chunks), a directory is a node, a small blob that
// names its entries. The id of the root node names the whole tree, so equal trees
// have equal ids and unchanged directories are stored once.
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
//   - Names are raw bytes, modes, symbolic links, binary files and empty directories
//     are content. [Result.NotCaptured] lists paths that are not captured, with the
//     reason.
//   - A file that changes while it is read is read again; a mixture of two versions
//     is never part of a tree. If a process has the file open for writing, or mapped,
//     two equal reads are accepted, and every scan reads it again until that ends: a
//     long write() and stores through a mapping do not change the time stamp.
//   - .git is never captured, in any spelling and at any depth, and nothing outside
//     the root is read, even if directories turn into links meanwhile.
//   - The index only saves time. A lost, damaged or outdated one causes a longer
//     scan, never a wrong tree.
//
// Scan stores blobs but does not flush them: the commit that names the tree, or
// Store.Flush, makes them durable. Callers decide which trees to keep, who owns which
// changes, and how to restore a tree to disk.
package workspace
