// Package thread keeps the states of graphs for agent frameworks, frame by frame.
//
// A framework that runs a graph of tasks stores, after each round of them, the values of
// all channels of the graph. Such a state is a [Frame] here; frameworks call it a
// checkpoint. Frames belong to a thread, and in it to a namespace for each graph inside a
// graph. Ids are given by the framework and grow with time. A frame has opaque contents,
// JSON metadata that can be searched, and the writes of tasks that ended before the next
// frame was made.
//
//	store := thread.New(blobs, rows, nil)
//	err := store.Put(ctx, thread.NewFrame{
//		Key:      thread.Key{Thread: "t1", ID: "0002"},
//		Parent:   "0001",
//		Versions: map[string]string{"messages": "2", "mode": "1"},
//		Values:   map[string]thread.Value{"messages": {Type: "json", Data: messages}},
//	})
//	frame, err := store.Get(ctx, thread.Key{Thread: "t1"}) // the latest
//
// Put takes the values that changed; the others are taken from the parent. Every
// value but a short one is a blob that is stored as the difference from another one,
// so a thread of 1,000 frames takes little more space than the changes
// (BenchmarkThousandFrames measures it). A frame names all its values, so any other
// frame can be removed.
//
// A frame and its values are stored in one commit, all or nothing. The meaning of
// contents is left to frameworks, access control to the server.
package thread
