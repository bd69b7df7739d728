// Package cloudagent keeps agents that run elsewhere: their state, their status
// and a log of everything that they did, for any number of followers.
//
// An agent has one record, a pointer to its current state, and a log of events
// that has no gaps. Appending updates, saving a state and setting the status each
// are one commit: blobs, state, pointer, offset and event appear together or not
// at all. The pointer is kept in the compatible form too.
//
//	store := cloudagent.New(blobs, rows, nil)
//	agent, err := store.Create(ctx, cloudagent.Spec{Name: "fix the tests"})
//	offset, err := store.AppendUpdate(ctx, agent.ID, nil, update)
//	saved, err := store.SaveState(ctx, agent.ID, state, blobs, nil)
//	for response, err := range store.Stream(ctx, agent.ID, nil) { … }
//
// Stream pulls from the rows, so that a slow reader costs nothing, and resumes
// after any offset. Follow is its other end: it survives lost connections and
// gives each event once and in order. An offset carries a tag that is computed
// over the whole log before it: a reader that knows a history which the store
// does not have, since it was restored from a backup, begins anew instead of
// missing what differs.
//
// Transport, and who may see which agent, are left to others.
package cloudagent
