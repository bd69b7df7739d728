// Package cloudagent stores agents that run elsewhere: their state, their status and
// a log of their events, for any number of followers.
//
// An agent has one record, a pointer to its current state, and a log of events
// without gaps. Appending updates, saving a state and setting the status are one
// commit each: blobs, state, pointer, offset and event appear together or not at all.
// The pointer is also stored in the compatible form. If the agent works on a
// conversation of the store, a new state becomes a save of it in the same commit.
//
//	store := cloudagent.New(blobs, rows, nil)
//	agent, err := store.Create(ctx, cloudagent.Spec{Name: "fix the tests"})
//	offset, err := store.AppendUpdate(ctx, agent.ID, nil, update)
//	saved, err := store.SaveState(ctx, agent.ID, state, blobs, nil)
//	for response, err := range store.Stream(ctx, agent.ID, nil) { … }
//
// Stream pulls from the rows, so a slow reader costs nothing, and resumes after any
// offset. Follow is the client side: it survives lost connections and yields each
// event once and in order. An offset carries a tag computed over the whole log before
// it: a reader whose history is not in the store, for example because the store was
// restored from a backup, starts over instead of missing differences. Copy follows an
// agent into a store of this machine, where it can be read without its server.
//
// Transport and access control are left to other packages.
package cloudagent
