package encrypted

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// SeedKey is the key of the compatible form.
type SeedKey struct {
	aead func() cipher.AEAD // a function: fmt prints at most its address
}

const seedIV = 12

// NewSeedKey makes the key from its text, which the compatible form hashes with
// SHA-256. That does not protect a text that can be guessed.
func NewSeedKey(text string) *SeedKey {
	key := sha256.Sum256([]byte(text))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("encrypted: AES takes 32 bytes: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("encrypted: AES has 16-byte blocks: " + err.Error())
	}
	return &SeedKey{aead: func() cipher.AEAD { return aead }}
}

// Format hides the key for every verb.
func (k *SeedKey) Format(f fmt.State, _ rune) { io.WriteString(f, "encrypted.SeedKey(hidden)") }

// seal returns IV ‖ ciphertext ‖ tag. Readers of that form rely on the hash, so
// content with another hash is refused here.
func (k *SeedKey) seal(b blob.Blob) ([]byte, error) {
	if got := blob.Sum(b.Data); got != b.ID {
		return nil, &blob.MismatchError{Want: b.ID, Got: got}
	}
	out := make([]byte, seedIV, seedIV+len(b.Data)+tagSize)
	rand.Read(out)
	return k.aead().Seal(out, out, b.Data, nil), nil
}

// open decrypts in place. The form binds nothing to the name; the hash does.
func (k *SeedKey) open(id blob.ID, data []byte) ([]byte, error) {
	if len(data) < seedIV+tagSize {
		return nil, blob.Corrupt(id, "seed form of %d bytes", len(data))
	}
	sealed := data[seedIV:]
	content, err := k.aead().Open(sealed[:0], data[:seedIV], sealed, nil)
	if err != nil {
		// The form has no key id, so another key and damage look the same.
		return nil, blob.Corrupt(id, "cannot decrypt seed form with the given key")
	}
	if got := blob.Sum(content); got != id {
		return nil, blob.Corrupt(id, "seed form holds content with SHA-256 %s", got)
	}
	return content, nil
}

func (s *Store) getSeed(ctx context.Context, id blob.ID) ([]byte, error) {
	data, err := s.inner.Get(ctx, id)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, blob.NotFound(id)
	}
	if err != nil {
		return nil, fmt.Errorf("get blob %s in seed form: %w", id, err)
	}
	return s.opts.Seed.open(id, data)
}

// hasSeed sets has for the blobs that are stored in seed form.
func (s *Store) hasSeed(ctx context.Context, ids []blob.ID, has []bool) error {
	var missing []blob.ID
	var at []int
	for i, ok := range has {
		if !ok {
			missing, at = append(missing, ids[i]), append(at, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := s.inner.Has(ctx, missing...)
	if err != nil {
		return fmt.Errorf("look for blobs in seed form: %w", err)
	}
	for i, ok := range found {
		has[at[i]] = ok
	}
	return nil
}

// adopt stores a blob that exists in seed form in our form as well.
func (s *Store) adopt(ctx context.Context, id blob.ID) error {
	content, err := s.getSeed(ctx, id)
	if err != nil {
		return err
	}
	b, err := s.sealBlob(blob.Blob{ID: id, Data: content})
	if err != nil {
		return fmt.Errorf("seal blob %s: %w", id, err)
	}
	return s.inner.Put(ctx, b)
}

// adoptBase stores a base in our form if it exists only in seed form, because the store
// below must find its name.
func (s *Store) adoptBase(ctx context.Context, earlier []blob.Blob, base blob.ID) error {
	if base.IsZero() || !s.opts.AllowSeedForm || s.opts.WriteSeedForm {
		return nil
	}
	for i := range earlier {
		if earlier[i].ID == base {
			return nil
		}
	}
	has, err := s.inner.Has(ctx, s.sealedName(base))
	if err != nil || has[0] {
		return err
	}
	return s.adopt(ctx, base)
}
