package cli

import (
	"cmp"
	"fmt"
	"os"
)

// keySources are the flag and the variables that have the key of a store.
type keySources struct{ flag, file, phrase string }

// keySources returns those of this store. The two sides of a push or pull have their own, since
// the key of one opens nothing of the other.
func (a *app) keySources() keySources {
	if a.otherSide {
		return keySources{"--remote-key-file", "STET_REMOTE_KEY_FILE", "STET_REMOTE_PASSPHRASE"}
	}
	return keySources{"--key-file", "STET_KEY_FILE", "STET_PASSPHRASE"}
}

// whichStore begins a sentence about the key of a store, where there are two.
func (a *app) whichStore(dir string) string {
	if a.otherSide {
		return fmt.Sprintf("REMOTE is %s; ", dir)
	}
	return ""
}

// keyPath returns the key file that was named, or "".
func (a *app) keyPath() string { return cmp.Or(a.keyFile, os.Getenv(a.keySources().file)) }

// givenKey names the source of a key for this store, or "": with a key, nothing may be
// written unencrypted.
func (a *app) givenKey() string {
	from := a.keySources()
	switch {
	case a.keyFile != "":
		return from.flag
	case os.Getenv(from.file) != "":
		return from.file
	case os.Getenv(from.phrase) != "":
		return from.phrase
	}
	return ""
}
