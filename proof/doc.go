// Package proof writes down what a store holds so that others can check it later, without
// the store: which rows and trees a conversation has, signed with the key of the store.
//
//	key, err := proof.StoreKey(dir, db.Ring())
//	err = proof.Write(ctx, file, proof.Stores{Blobs: db.Blobs(), Rows: db.Rows()}, proof.Subject{Conversation: id}, key, nil)
//	…
//	found, err := proof.Verify(file, &proof.VerifyOptions{Key: public})
//	differences, extra, err := found.Compare(dir, "") // the files of a directory
//
// It promises that Verify accepts no proof of which a byte was changed, that it needs
// neither the store nor a network, and that its memory grows with the size of the proof
// only. A proof stays valid whatever happens to the store. What a purge has rewritten is
// shown with the hash that it had before.
//
// Whether a key belongs to a store is for the caller to know; so is whether the signer's
// clock was right. docs/format/proof.md has the format.
package proof
