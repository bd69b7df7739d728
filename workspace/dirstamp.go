package workspace

import "time"

// A directory whose stamp is the one that its names were read under still holds
// the same names, and a scan takes them from the index. That holds because
//
//   - every change of a name stamps the directory, on the file systems that eraOf
//     knows, with the time of a clock that does not go back;
//   - a stamp counts only if it was over when the scan began, before the directory
//     was opened. A name that came later has a later stamp. Before opening is what
//     matters: btrfs and tmpfs list what was there when the directory was opened,
//     so a name may be missing from the list and yet show in the stamp;
//   - names and stamp change under the directory's lock, which listing takes too:
//     whatever is in the stamp that was read before is in the list;
//   - nothing was lost since: see era.
//
// It is the directory's list alone that is spared. Each name is still looked at,
// each directory opened.

// dirStamp is what shows that names in a directory changed. The zero value shows
// nothing.
type dirStamp struct {
	mtime, ctime int64 // nanoseconds
	ino          uint64
}

// era names a boot of the machine and a file system. After a crash a file system
// may have kept a name and lost the stamp that came with it, and another file
// system may have the same inodes: stamps are compared within an era only. The
// zero value is no era.
type era [eraLen]byte

const eraLen = 16

// trust is what a scan may do with stamps of directories.
type trust struct {
	era     era    // of the new index
	dev     uint64 // of the root: what is mounted below may be of any kind
	began   int64  // the clock before any directory was opened
	local   bool   // the root's file system knows all its users
	believe bool   // stamps of the previous index are of this era
	record  bool   // stamps of the new index will be
}

// newTrust looks at the root directory. A scan of everything makes an index of
// the present era, for it looks at every directory. A scan of some paths keeps
// most of the previous index and therefore its era.
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

// over reports whether the directory would get another stamp if it were changed
// after the scan began. A stamp of whole milliseconds may be that of a file system
// that knows no smaller times (ext3 knows seconds) and is not relied on: were the
// clock set back a little, the same second would come again.
func (t *trust) over(s dirStamp) bool {
	return s.ctime < t.began && s.ctime%int64(time.Millisecond) != 0
}

// believes reports whether the index knows all names of the directory.
func (j *dirJob) believes(t *trust) bool {
	return t.believe && j.prev != nil && j.hints == nil && !j.partial &&
		j.stamp != dirStamp{} && j.stamp == j.prev.listed
}

// knownNames takes the names from the index, where they are in order.
func (w *worker) knownNames(j *dirJob) {
	j.names = w.namesFor(len(j.prev.entries))
	for i := range j.prev.entries {
		e := &j.prev.entries[i]
		kind := isFile // or whatever else is no directory: a look at it tells
		if e.kind == Dir {
			kind = isDir
		}
		j.names[i] = dirent{name: e.name, kind: kind}
	}
}

// listedStamp returns the stamp under which the entries found are all names that
// the directory has, or the zero value. What could not be captured is no entry,
// and must be seen and named by every scan.
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

// wasAbsent reports whether a name that was asked for is not in the directory,
// given that its stamp is the one that the index knows all names under.
func (j *dirJob) wasAbsent(name string) bool {
	if j.hints == nil {
		return false
	}
	_, was := j.prev.find(name)
	return !was
}

// keepsStamp reports whether an otherwise unchanged directory keeps its record.
// A record whose stamp the directory no longer has does no harm: it says that
// the names were its entries when the directory had that stamp, which stays true,
// and the stamp does not come back. That holds within an era: what was said in
// another is not taken over unless this scan found the same.
func (j *dirJob) keepsStamp(listed dirStamp, t *trust) bool {
	return listed == j.prev.listed || listed == dirStamp{} && (t.believe || j.hints != nil)
}
