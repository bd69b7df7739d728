package cursor

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"

	"github.com/stet-dev/stet/blob"
)

const sealedOverhead = 12 + 16 // nonce before, tag after

// openSealed opens the envelope of the encrypting layer: a nonce of 12 bytes, the
// ciphertext and a tag of 16 bytes, by AES-256-GCM under the SHA-256 of the key
// string.
func openSealed(key Secret, data []byte) ([]byte, bool) {
	if key.IsZero() || len(data) < sealedOverhead {
		return nil, false
	}
	sum := sha256.Sum256([]byte(key.Reveal()))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, false
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, false
	}
	plain, err := gcm.Open([]byte{}, data[:gcm.NonceSize()], data[gcm.NonceSize():], nil)
	return plain, err == nil
}

// unseal tries to decrypt a row with the key of Options or, in an agent's store, with
// the key there. The id must still match.
func (b *tableBlobs) unseal(ctx context.Context, id blob.ID, v Value) ([]byte, bool) {
	if v.Class != ClassBlob {
		return nil, false
	}
	if plain, ok := openSealed(b.db.opts.Key, v.Data); ok && blob.Sum(plain) == id {
		return plain, true
	}
	if b.table != blobTable {
		return nil, false
	}
	meta, err := readAgentMeta(ctx, b.db)
	if err != nil {
		return nil, false
	}
	plain, ok := openSealed(meta.Key, v.Data)
	return plain, ok && blob.Sum(plain) == id
}
