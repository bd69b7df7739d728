package keyring_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/keyring"
)

func Example() {
	dir, err := os.MkdirTemp("", "keyring")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	keyFile := filepath.Join(dir, "key")
	if err := keyring.GenerateKeyFile(keyFile); err != nil {
		fmt.Println(err)
		return
	}
	ring, err := keyring.Create(filepath.Join(dir, "keys.json"), keyring.KeyFile(keyFile))
	if err != nil {
		fmt.Println(err)
		return
	}
	old, _ := ring.Active()
	if err := ring.Rotate(); err != nil {
		fmt.Println(err)
		return
	}
	current, _ := ring.Active()
	stillThere, err := ring.Key(old.ID())
	fmt.Println("new key for writes:", current.ID() != old.ID())
	fmt.Println("old key for reads:", stillThere.ID() == old.ID(), err)
	fmt.Println("keys:", len(ring.List()))
	// Output:
	// new key for writes: true
	// old key for reads: true <nil>
	// keys: 2
}
