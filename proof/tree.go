package proof

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/stet-dev/stet/blob"
)

// The first byte of each hashed input. A link of the log has 3.
const (
	tagRow   = 0
	tagNode  = 1
	tagGroup = 2
)

// rowHash is the hash of a row as a leaf.
func rowHash(key string, value []byte) blob.ID {
	digest := blob.Sum(value)
	buf := append(tagged(tagRow, key), digest[:]...)
	return blob.Sum(buf)
}

// groupHash is the hash of a group as a leaf.
func groupHash(name string, rows uint64, root blob.ID) blob.ID {
	buf := binary.BigEndian.AppendUint64(tagged(tagGroup, name), rows)
	return blob.Sum(append(buf, root[:]...))
}

func tagged(tag byte, name string) []byte {
	buf := make([]byte, 0, 5+len(name)+8+blob.IDSize)
	buf = append(buf, tag)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(name)))
	return append(buf, name...)
}

func nodeHash(left, right blob.ID) blob.ID {
	var buf [1 + 2*blob.IDSize]byte
	buf[0] = tagNode
	copy(buf[1:], left[:])
	copy(buf[1+blob.IDSize:], right[:])
	return sha256.Sum256(buf[:])
}

// rootOf is the root of a tree with the given leaves.
func rootOf(leaves []blob.ID) blob.ID {
	switch len(leaves) {
	case 0:
		return blob.Sum(nil)
	case 1:
		return leaves[0]
	}
	k := half(uint64(len(leaves)))
	return nodeHash(rootOf(leaves[:k]), rootOf(leaves[k:]))
}

// half is the number of leaves on the left of a tree of n, at least 2: the largest power
// of two below n.
func half(n uint64) uint64 {
	k := uint64(1)
	for k < n-k {
		k *= 2
	}
	return k
}

// prune walks through a tree: show is called for each leaf that is shown, and hide for
// each largest subtree without such a leaf.
func prune(leaves []blob.ID, shown func(i int) bool, show func(i int) error, hide func(n int, hash blob.ID) error) error {
	count := make([]int, len(leaves)+1) // shown leaves before each place
	for i := range leaves {
		count[i+1] = count[i]
		if shown(i) {
			count[i+1]++
		}
	}
	var walk func(from, to int) error
	walk = func(from, to int) error {
		switch {
		case from == to:
			return nil
		case count[from] == count[to]:
			return hide(to-from, rootOf(leaves[from:to]))
		case to-from == 1:
			return show(from)
		}
		middle := from + int(half(uint64(to-from)))
		if err := walk(from, middle); err != nil {
			return err
		}
		return walk(middle, to)
	}
	return walk(0, len(leaves))
}

// graft computes the root of a pruned tree of n leaves. leaf returns the hash of the next
// leaf, and hidden that of the next subtree if one of exactly n leaves comes next.
func graft(n uint64, leaf func() (blob.ID, error), hidden func(n uint64) (blob.ID, bool, error)) (blob.ID, error) {
	if n == 0 {
		return rootOf(nil), nil
	}
	if hash, ok, err := hidden(n); err != nil || ok {
		return hash, err
	}
	if n == 1 {
		return leaf()
	}
	k := half(n)
	left, err := graft(k, leaf, hidden)
	if err != nil {
		return blob.ID{}, err
	}
	right, err := graft(n-k, leaf, hidden)
	return nodeHash(left, right), err
}
