package workspace

import "hash/fnv"

// Share is a part of all files: those whose place on a ring of 2^32 places is in
// [From, To). Consecutive shares cover every file once per round. The zero value is
// empty; other equal From and To mean the whole ring.
type Share struct{ From, To uint32 }

// has reports whether a file is in the share. Its place is derived from its inode: if
// an editor replaces the file, it gets another place, and its new content is read
// anyway.
func (s Share) has(st fileStat, name string) bool {
	if s == (Share{}) {
		return false
	}
	at := uint32(st.ino * 0x9e3779b97f4a7c15 >> 32)
	if st.ino == 0 { // not available on this system
		h := fnv.New32a()
		_, _ = h.Write([]byte(name)) // never fails
		at = h.Sum32()
	}
	if s.From < s.To {
		return s.From <= at && at < s.To
	}
	return s.From <= at || at < s.To
}
