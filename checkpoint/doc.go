// Package checkpoint takes a workspace back to where it was.
//
// A checkpoint ties the tree of a directory to the state of a conversation. The
// checkpoints of a directory form one sequence, whichever conversations they
// belong to, and from that sequence the package knows who wrote what. A rewind
// is planned first and applied all or nothing; the present is saved before it,
// so that it can be undone, and the undo undone:
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
//   - A rewind changes only what its plan lists. What others wrote, and what the
//     user changed since the agent wrote it, is kept unless somebody chose
//     otherwise. Nothing is deleted that the conversation did not create.
//   - After a crash at any point the next Open leaves exactly the tree before the
//     rewind or exactly the one after it, and no staged files. A rewind that
//     fails leaves everything as it was.
//   - Nothing is ever overwritten unseen: new content trades places with the old
//     one, and if that is not what the plan saw, it trades back.
//   - No symbolic link is followed and nothing outside the workspace is touched.
//     .git is neither read nor written.
//
// Capturing trees is left to package workspace, the states of conversations to
// package conversation, and removing checkpoints that nobody needs to the
// collector, for which Service.Roots names what is needed.
package checkpoint
