// Package keyring keeps the data keys of a store in one small file and opens it
// with a passphrase, a key file or given bytes.
//
// It promises that no secret is on disk in the clear, that the file is replaced as a
// whole or not at all, that several processes may share and rotate it, that a wrong
// key (ErrWrongKey) is distinguished from damage (ErrCorrupt), and that no fmt verb
// prints a secret.
//
//	ring, err := keyring.Create("store/keys.json", keyring.Passphrase("correct horse", nil))
//	key, err := ring.Active()            // writes use this one
//	sub, err := key.Derive(salt, "use of the sub-key", 32)
//	err = ring.Rotate()                  // a new active key, old ones still read
//	err = ring.Rewrap(keyring.KeyFile("/etc/stet/key")) // other lock, same data keys
//
// blob/encrypted and kv/sealed do the sealing. The package does not read the
// operating system's keyring: pass a key from there with Raw. Losing the passphrase
// or key file loses everything that the ring seals; there is no back door.
package keyring
