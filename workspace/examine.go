package workspace

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/stet-dev/stet/blob"
)

// runRange examines some names of a directory.
func (w *worker) runRange(j *dirJob, lo, hi int) error {
	known := knownEntries{dir: j.prev}
	var err error
	for i := lo; i < hi && err == nil; i++ {
		err = w.examine(j, i, known.find(j.names[i].name))
	}
	j.rangeDone()
	if err != nil {
		return err
	}
	return w.done(j)
}

// rangeDone closes the directory after its last range: directories below are
// opened by their path.
func (j *dirJob) rangeDone() {
	if j.ranges.Add(-1) == 0 {
		j.fd.close()
	}
}

// knownEntries finds entries of an index directory for names in rising order,
// which is faster than a search for each.
type knownEntries struct {
	dir  *indexDir
	next int
	on   bool
}

func (k *knownEntries) find(name string) *indexEntry {
	if k.dir == nil {
		return nil
	}
	if !k.on {
		k.next, _ = k.dir.find(name)
		k.on = true
	}
	for k.next < len(k.dir.entries) {
		e := &k.dir.entries[k.next]
		if e.name >= name {
			if e.name == name {
				return e
			}
			return nil
		}
		k.next++
	}
	return nil
}

// examine decides whether to capture one name, and captures it.
func (w *worker) examine(j *dirJob, i int, prev *indexEntry) error {
	name, kind := j.names[i].name, j.names[i].kind
	if skipName(name) {
		return w.passOver(j, i)
	}
	if kind == isMissing {
		return w.missing(j, name)
	}
	var st fileStat
	unknown := kind == isFile && prev == nil && w.s.opts.Written == nil // read regardless of its stat data
	if !unknown && (kind == isUnknown || kind == isFile || kind == isLink) {
		var err error
		if kind != isUnknown && w.knownIgnored(j, prev, kind) {
			return w.leave(j, i, kind, cmp.Or(w.rule(j, name, kind), ReasonIgnored))
		}
		if st, err = j.fd.lstat(name); err != nil {
			return w.leaveOut(j, name, false, err)
		}
		w.setMode(j, name, &st, prev)
		kind = st.kind
	}
	flags, left := w.judge(j, name, kind, prev)
	if left != "" {
		return w.leave(j, i, kind, left)
	}
	if why := w.refused(j, name, prev); why != "" {
		w.skip(j, name, Skipped{Reason: why, Dir: kind == isDir})
		return nil
	}
	switch kind {
	case isDir:
		w.enter(j, i, flags, prev)
		return nil
	case isFile:
		w.stats.Files++
		if unknown {
			return w.capture(j, i, flags, nil)
		}
		return w.file(j, i, st, flags, prev)
	case isLink:
		return w.link(j, i, st, flags, prev)
	}
	w.skip(j, name, Skipped{Reason: ReasonSpecial})
	return nil
}

// refused returns why a tree may not hold a name. Names that the tree already has are
// allowed.
func (w *worker) refused(j *dirJob, name string, prev *indexEntry) Reason {
	if prev != nil && prev.captured() {
		return ""
	}
	switch {
	case len(name) > MaxName || len(j.path)+1+len(name) > MaxPath:
		return ReasonPathLength
	case forbiddenName(name) != "" || CheckHere(name) != nil:
		return ReasonName
	}
	return ""
}

// knownIgnored reports whether the index has a name as ignored and nothing could have
// changed that, so that not even stat is needed.
func (w *worker) knownIgnored(j *dirJob, prev *indexEntry, kind fileKind) bool {
	return prev != nil && prev.flags == flagIgnored && j.sameRules() &&
		(prev.kind == Dir) == (kind == isDir) && j.touched.kid(prev.name) == nil
}

// sameRules reports whether verdicts of the previous scan still hold.
func (j *dirJob) sameRules() bool {
	return j.prev != nil && !j.forced && !j.partial && j.prev.rules == j.rules.fingerprint()
}

// judge applies the rules to a name. It returns the flags of the captured entry, or why
// the name is left out.
func (w *worker) judge(j *dirJob, name string, kind fileKind, prev *indexEntry) (entryFlags, Reason) {
	if w.s.given.empty() && (j.forced || w.s.opts.NoIgnore) {
		return 0, ""
	}
	known := prev != nil && prev.flags&flagBare == 0 && j.sameRules() && (prev.kind == Dir) == (kind == isDir)
	if known && prev.flags&flagIgnored == 0 || j.rules == nil && !j.partial {
		return prev.earlier(kind), ""
	}
	why := w.rule(j, name, kind)
	switch {
	case why == ReasonExcluded && !w.s.opts.Reveal:
		return 0, why
	case j.forced:
		return 0, ""
	case why == "":
		return prev.earlier(kind), ""
	}
	if flags, ok := ignoredButCaptured(kind, prev, j.touched.kid(name)); ok {
		return flags, ""
	}
	return 0, why
}

// earlier returns the flags that an entry keeps from an earlier verdict although no
// rule ignores it now: the rule may come back, for example by a rewind, and the entry
// then stays captured.
func (e *indexEntry) earlier(kind fileKind) entryFlags {
	if e == nil || !e.captured() || (e.kind == Dir) != (kind == isDir) {
		return 0
	}
	return e.flags & (flagTouched | flagPartial)
}

// ignoredButCaptured reports whether an ignored entry is captured anyway: because an
// agent touched it, or because the previous tree has it. Rules decide about new files
// only; a later rule, for example by an agent, must not remove a file from all later
// checkpoints. Of a directory kept for that reason, only what the tree had is
// captured.
func ignoredButCaptured(kind fileKind, prev *indexEntry, touched *pathSet) (entryFlags, bool) {
	had := prev != nil && prev.captured() && (kind != isDir || prev.kind == Dir)
	whole := touched.whole() || had && prev.flags&flagTouched != 0
	switch {
	case whole:
		return flagIgnored | flagTouched, true
	case kind == isDir && (touched != nil || had):
		return flagIgnored | flagPartial, true
	case had:
		return flagIgnored | flagTouched, true
	}
	return 0, false
}

// leave records a name that is not captured, by a rule or because it is a repository. If
// a tree may have had it, an excluded name must be listed: it was not removed. The index
// keeps it, so that the next scan need not match it again.
func (w *worker) leave(j *dirJob, i int, kind fileKind, why Reason) error {
	if j.partial && why != ReasonExcluded {
		return nil // the ignored directory itself is listed
	}
	s := &j.slots[i]
	name := j.names[i].name
	s.found = true
	s.e = indexEntry{name: name, kind: File, flags: flagIgnored}
	if kind == isDir {
		s.e.kind = Dir
	}
	if j.prev != nil {
		if at, ok := j.prev.find(name); ok {
			p := &j.prev.entries[at]
			s.same = p.flags == flagIgnored && p.kind == s.e.kind
		}
	}
	w.skip(j, name, Skipped{Reason: why, Dir: kind == isDir})
	return nil
}

// enter queues a directory.
func (w *worker) enter(j *dirJob, i int, flags entryFlags, prev *indexEntry) {
	name := j.names[i].name
	if prev != nil {
		name = prev.name
	}
	sub := &dirJob{
		parent: j, slot: i, path: join(j.path, name), rules: j.rules,
		forced: j.forced || flags&flagTouched != 0, partial: flags.partial(),
		touched: j.touched.kid(name),
	}
	if j.hints != nil {
		sub.hints = j.hints.kid(name)
	}
	s := &j.slots[i]
	s.found = true
	s.e = indexEntry{name: name, kind: Dir, flags: flags}
	if prev != nil && prev.captured() && prev.kind == Dir {
		sub.prevRef = subOf(prev, j.prev.subs)
		s.same = prev.flags == flags
		if w.s.noModes {
			was := *prev // the parent's index may go back to its worker
			sub.was = &was
		}
	}
	if flags.partial() {
		w.skip(j, name, Skipped{Reason: cmp.Or(w.rule(j, name, isDir), ReasonIgnored), Dir: true})
	}
	j.pending.Add(1)
	w.s.queue.push(sub)
}

// file captures a regular file, which is not read if it is unchanged.
func (w *worker) file(j *dirJob, i int, st fileStat, flags entryFlags, prev *indexEntry) error {
	if st.size > w.s.maxFile {
		w.skip(j, j.names[i].name, Skipped{Reason: ReasonTooLarge, Size: st.size})
		return nil
	}
	if prev.fits(File, st) && !w.distrusts(j, j.names[i].name, st) {
		j.slots[i].reuse(prev, flags)
		w.stats.Size += st.size
		w.lacks(j, j.names[i].name, st, false)
		return nil
	}
	if w.written(j, i, st, flags) {
		w.stats.Size += st.size
		return nil
	}
	if prev != nil && (prev.kind != File || !prev.captured()) {
		prev = nil
	}
	return w.capture(j, i, flags, prev)
}

// distrusts reports whether a file is read although its stamps are unchanged.
func (w *worker) distrusts(j *dirJob, name string, st fileStat) bool {
	o := &w.s.opts
	return o.Full || o.Share.has(st, name) || o.Reread != nil && o.Reread[join(j.path, name)]
}

// capture reads a regular file. prev is the file that the index knows there, or nil.
func (w *worker) capture(j *dirJob, i int, flags entryFlags, prev *indexEntry) error {
	name := j.names[i].name
	got, err := w.readFile(j.fd, name, prev)
	switch {
	case errors.Is(err, errNotReadable) && got.st.kind == isFile:
		w.skip(j, name, Skipped{Reason: ReasonTooLarge, Size: got.st.size})
		return nil
	case errors.Is(err, errNotReadable):
		return w.leaveOut(j, name, false, errChanging) // it was a file before
	case err != nil:
		return w.leaveOut(j, name, false, err)
	}
	w.setMode(j, name, &got.st, prev)
	w.stats.Size += got.st.size
	w.lacks(j, name, got.st, got.attributes)
	s := &j.slots[i]
	s.found = true
	s.e = newEntry(name, File, got.st, flags|got.flags, got.id)
	if prev != nil {
		s.same = s.e == *prev // as for a file that is reread while it is open
	}
	return nil
}

// link captures a symbolic link.
func (w *worker) link(j *dirJob, i int, st fileStat, flags entryFlags, prev *indexEntry) error {
	w.stats.Files++
	name := j.names[i].name
	s := &j.slots[i]
	st.mode = 0
	if prev.fits(Symlink, st) && !w.s.opts.Full {
		s.reuse(prev, flags)
		return nil
	}
	target, err := j.fd.readlink(name)
	if err != nil {
		return w.leaveOut(j, name, false, err)
	}
	if len(target) > MaxPath {
		return w.leaveOut(j, name, false, fs.ErrInvalid)
	}
	b := blob.New([]byte(target))
	st.size = int64(len(target))
	s.found = true
	s.e = newEntry(name, Symlink, st, flags, b.ID)
	if st.ctime >= stampClock() {
		s.e.flags |= flagUnsure // it may be replaced within the same tick
	}
	return w.put(b)
}

func newEntry(name string, kind Kind, st fileStat, flags entryFlags, id blob.ID) indexEntry {
	return indexEntry{
		name: name, kind: kind, flags: flags, mode: st.mode, size: st.size,
		mtime: st.mtime, ctime: st.ctime, ino: st.ino, id: id, sub: -1,
	}
}

// fits reports whether the stat data proves that an entry is unchanged.
func (e *indexEntry) fits(kind Kind, st fileStat) bool {
	return e != nil && e.kind == kind && e.captured() && e.flags&flagUnsure == 0 && e.mode == st.mode &&
		e.size == st.size && e.mtime == st.mtime && e.ctime == st.ctime && e.ino == st.ino
}

// reuse keeps an unchanged entry.
func (s *slot) reuse(prev *indexEntry, flags entryFlags) {
	s.found = true
	s.e = *prev
	const judged = flagIgnored | flagTouched | flagPartial
	s.same = prev.flags&judged == flags
	s.e.flags = prev.flags&^judged | flags
}
