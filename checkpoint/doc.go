// Package checkpoint rewinds a workspace to an earlier state.
//
// A checkpoint ties the tree of a directory to the state of a conversation. The
// checkpoints of a directory form one sequence, whichever conversations they belong
// to, and the package derives from that sequence who wrote what. A rewind is planned
// first and applied all or nothing; the current state is saved before it, so that the
// rewind can be undone, and the undo redone:
//
//	s := checkpoint.New(blobs, rows, &checkpoint.Options{IndexDir: dir})
//	w, err := s.Open(ctx, "/src/shop")
//	first, err := w.Checkpoint(ctx, checkpoint.Request{Conversation: "c1", Side: checkpoint.Before})
//	// … the agent works …
//	_, err = w.Checkpoint(ctx, checkpoint.Request{Conversation: "c1", Side: checkpoint.After})
//	plan, err := w.Plan(ctx, checkpoint.RewindRequest{To: first.Record.ID})
//	done, err := w.Rewind(ctx, plan.Request(), plan.Token)
//	_, err = w.Undo(ctx, nil)
//
// What the package promises:
//
//   - A rewind changes only what its plan lists. Work of others, and files that the
//     user changed after the agent, are kept unless the caller chooses otherwise.
//     Nothing is deleted that the conversation did not create.
//   - After a crash at any point the next Open leaves exactly the tree before the
//     rewind or exactly the one after it, and no staged files. A failed rewind leaves
//     everything unchanged.
//   - Nothing is overwritten unseen: new content is exchanged with the old, and if
//     the old is not what the plan saw, it is exchanged back.
//   - No symbolic link is followed and nothing outside the workspace is touched.
//     .git is neither read nor written.
//
// Capturing trees is left to package workspace, the states of conversations to
// package conversation, and removing unneeded content to the collector, for which
// Service.Roots lists what is needed.
package checkpoint
