package workspace

import "hash/fnv"

// Share is a part of all files: those whose place on a ring of 2^32 places lies from
// From up to, and without, To. Shares that follow each other reach every file once
// in a round. The zero value is the share of no file; From and To that are equal
// otherwise are the whole ring.
type Share struct{ From, To uint32 }

// has reports whether a file is in the share. Its place follows from its inode: an
// editor that replaces the file gives it another place, and its new content is read
// anyway.
func (s Share) has(st fileStat, name string) bool {
	if s == (Share{}) {
		return false
	}
	at := uint32(st.ino * 0x9e3779b97f4a7c15 >> 32)
	if st.ino == 0 { // the system does not tell
		h := fnv.New32a()
		_, _ = h.Write([]byte(name)) // a hash takes everything
		at = h.Sum32()
	}
	if s.From < s.To {
		return s.From <= at && at < s.To
	}
	return s.From <= at || at < s.To
}
