// Package stet records what AI agents did, every conversation and every file, and
// lets people undo any of it.
//
// Open returns a DB: an embedded store in a directory, with its services. New builds
// the same over other drivers.
//
//	db, err := stet.Open(ctx, dir, nil)
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	talk, err := db.Conversations().Create(ctx, conversation.Info{Title: "add retry"})
//	space, err := db.Checkpoints().Open(ctx, project)
//	before, err := space.Checkpoint(ctx, checkpoint.Request{Conversation: talk.ID()})
//	// The agent works.
//	_, err = space.Rewind(ctx, checkpoint.RewindRequest{To: before.Record.ID}, "")
//
// The package guarantees that the layers of a stack are in the only safe order: ids are
// verified above everything that changes bytes, and nothing below the encrypting layer is
// readable. The services (packages conversation, checkpoint, cloudagent and search)
// define the data, and package upkeep maintains the store; DB exposes its methods. The
// example is a complete program.
package stet
