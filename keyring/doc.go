// Package keyring keeps the data keys of a store in one small file and opens it
// with a passphrase, a key file or given bytes.
//
// It promises that no secret is on disk in the clear, that the file is replaced
// as a whole or not at all, that several processes may share and rotate it, that
// a wrong key (ErrWrongKey) is told from damage (ErrCorrupt), and that nothing of
// it prints a secret, whatever the verb.
//
//	ring, err := keyring.Create("store/keys.json", keyring.Passphrase("correct horse", nil))
//	key, err := ring.Active()            // writes use this one
//	sub, err := key.Derive(salt, "use of the sub-key", 32)
//	err = ring.Rotate()                  // a new active key, old ones still read
//	err = ring.Rewrap(keyring.KeyFile("/etc/stet/key")) // other lock, same data keys
//
// What is sealed with the keys is left to blob/encrypted and kv/sealed. The
// operating system's keyring is not asked: hand over what it holds with Raw.
// Losing the passphrase or key file loses everything that the ring seals; there
// is no back door.
package keyring
