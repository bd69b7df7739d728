package workspace

import "time"

// If a directory still has the stamp under which its names were read, it has the same
// names, and a scan takes them from the index. This is true because
//
//   - every change of a name stamps the directory, on the file systems that eraOf
//     accepts, with the time of a clock that does not go back;
//   - a stamp counts only if it was in the past when the scan began, before the
//     directory was opened. A later name has a later stamp. It must be before
//     opening: btrfs and tmpfs list the names at the time of opening, so a name may
//     be in the stamp but not in the list;
//   - names and stamp change under the directory's lock, which listing also takes:
//     the list includes every change in a stamp that was read before;
//   - nothing was lost since: see era.
//
// Only listing the directory is saved. Each name is still examined and each directory
// opened.

// dirStamp shows whether names in a directory have changed. The zero value shows
// nothing.
type dirStamp struct {
	mtime, ctime int64 // nanoseconds
	ino          uint64
}

// era identifies a boot of the machine and a file system. After a crash a file system
// may have kept a name but lost its stamp, and another file system may have the same
// inodes, so stamps are compared only within an era. The zero value means none.
type era [eraLen]byte

const eraLen = 16

// trust describes how far a scan may rely on directory stamps.
type trust struct {
	era     era    // of the new index
	dev     uint64 // of the root; mounts below may be of any kind
	began   int64  // the clock before any directory was opened
	local   bool   // the root's file system sees all changes
	believe bool   // stamps of the previous index are of this era
	record  bool   // stamps of the new index will be
}

// newTrust examines the root directory. A full scan makes an index of the current
// era, because it examines every directory. A scan of some paths keeps most of the
// previous index and therefore its era.
func newTrust(root dirFD, prev *Index, everything bool) (trust, error) {
	t := trust{began: stampClock()}
	st, err := root.stat()
	if err != nil {
		return t, err
	}
	t.dev, t.era = st.dev, eraOf(root, st.dev)
	t.local = t.era != era{}
	t.believe = t.local && prev != nil && prev.era == t.era
	t.record = t.believe || t.local && everything
	if !everything {
		t.era = prev.era
	}
	return t, nil
}

// stampOf returns the stamp of a directory, the zero value if it proves nothing.
func (t *trust) stampOf(st fileStat) dirStamp {
	if !t.record || st.dev != t.dev {
		return dirStamp{}
	}
	return dirStamp{mtime: st.mtime, ctime: st.ctime, ino: st.ino}
}

// over reports whether the directory would get another stamp if it were changed after
// the scan began. A stamp of whole milliseconds may be from a file system with coarse
// times (ext3 has seconds) and is not trusted: if the clock were set back a little,
// the same second would come again.
func (t *trust) over(s dirStamp) bool {
	return s.ctime < t.began && s.ctime%int64(time.Millisecond) != 0
}

// believes reports whether the index has all names of the directory.
func (j *dirJob) believes(t *trust) bool {
	return t.believe && j.prev != nil && j.hints == nil && !j.partial &&
		j.stamp != dirStamp{} && j.stamp == j.prev.listed
}

// knownNames takes the names from the index, where they are in order.
func (w *worker) knownNames(j *dirJob) {
	j.names = w.namesFor(len(j.prev.entries))
	for i := range j.prev.entries {
		e := &j.prev.entries[i]
		kind := isFile // or anything but a directory; stat decides
		if e.kind == Dir {
			kind = isDir
		}
		j.names[i] = dirent{name: e.name, kind: kind}
	}
}

// listedStamp returns the stamp under which the entries found are all names that the
// directory has, or the zero value. A name that could not be captured is not an
// entry; every scan must see and report it.
func (j *dirJob) listedStamp(t *trust) dirStamp {
	switch {
	case j.stamp == dirStamp{} || j.partial:
		return dirStamp{}
	case j.believed:
	case j.hints != nil:
		if !t.believe || j.stamp != j.prev.listed {
			return dirStamp{}
		}
	case !t.over(j.stamp):
		return dirStamp{}
	}
	for i := range j.slots {
		if !j.slots[i].found && !skipName(j.names[i].name) && !j.wasAbsent(j.names[i].name) {
			return dirStamp{}
		}
	}
	return j.stamp
}

// wasAbsent reports whether a requested name is not in the directory, if the
// directory still has the stamp of the index.
func (j *dirJob) wasAbsent(name string) bool {
	if j.hints == nil {
		return false
	}
	_, was := j.prev.find(name)
	return !was
}

// keepsStamp reports whether an otherwise unchanged directory keeps its record. A
// record with an outdated stamp is harmless: it states the names at the time of that
// stamp, which stays true, and the stamp does not come back. That holds within an
// era: a record of another era is not kept unless this scan found the same.
func (j *dirJob) keepsStamp(listed dirStamp, t *trust) bool {
	return listed == j.prev.listed || listed == dirStamp{} && (t.believe || j.hints != nil)
}
