// Package proof records what a store holds so that others can check it later without
// the store: the rows and trees of a conversation, signed with the key of the store.
//
//	key, err := proof.StoreKey(dir, db.Ring())
//	err = proof.Write(ctx, file, proof.Stores{Blobs: db.Blobs(), Rows: db.Rows()}, proof.Subject{Conversation: id}, key, nil)
//	…
//	found, err := proof.Verify(file, &proof.VerifyOptions{Key: public})
//	differences, extra, err := found.Compare(dir, "") // the files of a directory
//
// It promises that Verify rejects a proof in which any byte was changed, that it
// needs neither the store nor a network, and that its memory grows only with the size
// of the proof. A proof stays valid whatever happens to the store. Content that a
// purge rewrote appears with the hash that it had before.
//
// The caller must know whether a key belongs to a store and whether the signer's
// clock was right. docs/format/proof.md has the format.
package proof
