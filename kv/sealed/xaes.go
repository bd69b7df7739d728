package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

const xaesNonceSize = 24

// xaes makes the ciphers of XAES-256-GCM (C2SP): AES-256-GCM whose key and nonce come
// from a 24-byte nonce, which may be random for any number of rows. It takes two AES
// blocks for a row, where HKDF takes several hashes; that adds up in scans.
type xaes struct {
	block cipher.Block
	k1    [aes.BlockSize]byte
}

func newXAES(key []byte) (*xaes, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &xaes{block: block}
	block.Encrypt(x.k1[:], x.k1[:])
	var carry byte
	for i := len(x.k1) - 1; i >= 0; i-- {
		next := x.k1[i] >> 7
		x.k1[i] = x.k1[i]<<1 | carry
		carry = next
	}
	x.k1[len(x.k1)-1] ^= carry * 0x87 // without a branch on the key
	return x, nil
}

// derive returns the cipher and the GCM nonce for a nonce of 24 bytes.
func (x *xaes) derive(nonce []byte) (cipher.AEAD, []byte, error) {
	var key [2 * aes.BlockSize]byte
	for i := range 2 {
		part := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		copy(part, []byte{0, byte(i + 1), 'X', 0})
		copy(part[4:], nonce[:12])
		subtle.XORBytes(part, part, x.k1[:])
		x.block.Encrypt(part, part)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(block)
	return aead, nonce[12:xaesNonceSize], err
}
