package workspace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/stet-dev/stet/blob"
)

// rangeSize is how many names of a directory one task examines, so that several
// workers share a large directory.
const rangeSize = 256

// dirJob is a directory being scanned.
type dirJob struct {
	parent *dirJob
	slot   int    // its place among the parent's names
	path   string // relative to the root, "" for the root
	rules  *rules // of this directory once it is open, of the parent before

	forced  bool     // ignore rules do not apply here
	partial bool     // ignored: only touched or already captured entries are captured
	touched *pathSet // below this directory
	hints   *pathSet // the only names to examine; nil for all

	was      *indexEntry // the directory in the parent's index, or nil
	prevRef  *dirRef     // the directory in the index, or nil
	prev     *indexDir   // the same, loaded
	borrowed bool        // prev belongs to a worker: do not keep parts of it

	fd       dirFD
	stamp    dirStamp // when it was opened, or zero if unreliable
	believed bool     // the names are from the index
	names    []dirent // sorted
	slots    []slot   // what was found, by names
	ranges   atomic.Int32
	pending  atomic.Int32 // ranges and directories that are not done
	result   *dirRef      // nil if the directory is gone or unreadable
}

// slot is the result for a name.
type slot struct {
	found bool
	same  bool // nothing changed since prev
	e     indexEntry
	sub   *dirRef
}

// runDir opens a directory, finds its names and queues them.
func (w *worker) runDir(j *dirJob) error {
	fd, err := w.s.root.openDir(j.path)
	if err != nil {
		return w.dirFailed(j, err)
	}
	j.fd = fd
	st, err := fd.stat()
	if err == nil {
		j.stamp = w.s.trust.stampOf(st)
		err = w.prepare(j)
	}
	if err != nil {
		fd.close()
		return w.dirFailed(j, err)
	}
	w.stats.Dirs++
	if j.parent != nil {
		e := &j.parent.slots[j.slot].e
		st.kind = isDir
		w.setMode(j.parent, e.name, &st, j.was)
		e.mode = st.mode
	}
	j.slots = w.slotsFor(len(j.names))
	n := (len(j.names) + rangeSize - 1) / rangeSize
	if n == 0 {
		fd.close()
		return w.finish(j)
	}
	j.ranges.Store(int32(n))
	j.pending.Store(int32(n))
	for lo := rangeSize; lo < len(j.names); lo += rangeSize {
		w.s.queue.pushTask(task{job: j, lo: lo, hi: min(lo+rangeSize, len(j.names))})
	}
	return w.runRange(j, 0, min(rangeSize, len(j.names)))
}

// prepare finds the names to examine, the ignore rules, and the index record.
func (w *worker) prepare(j *dirJob) error {
	if j.prevRef != nil {
		scratch := w.scratchDir()
		prev, err := j.prevRef.loadInto(w.s.ctx, w.s.store, scratch)
		if j.borrowed = prev == scratch; !j.borrowed {
			w.spare.dirs = append(w.spare.dirs, scratch)
		}
		if ctxErr := w.s.ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		if err == nil {
			j.prev = prev // otherwise everything is read
		} else {
			j.prevRef = nil
		}
	}
	if j.prev == nil {
		j.hints = nil // an unknown directory is scanned as a whole
	}
	if j.hints != nil && j.hints.all {
		j.hints = nil
	}
	if err := w.nameList(j); err != nil {
		return err
	}
	if !w.s.opts.NoIgnore && !j.forced && !j.partial {
		j.loadRules()
	}
	return nil
}

func (w *worker) nameList(j *dirJob) error {
	switch {
	case j.believes(&w.s.trust):
		j.believed = true
		w.knownNames(j)
		return nil
	case j.hints != nil:
		for name := range j.hints.kids {
			j.names = append(j.names, dirent{name: name})
		}
		if err := w.spell(j); err != nil {
			return err
		}
	case j.partial:
		if j.prev != nil {
			for i := range j.prev.entries {
				j.names = append(j.names, dirent{name: j.prev.entries[i].name})
			}
		}
		if j.touched != nil {
			for name := range j.touched.kids {
				j.names = append(j.names, dirent{name: name})
			}
		}
		if err := w.spell(j); err != nil {
			return err
		}
	default:
		w.stats.listed++
		var err error
		if j.names, err = j.fd.list(w.dirBuf); err != nil {
			return err
		}
	}
	if len(j.names) > MaxEntries {
		return fmt.Errorf("%d names; the limit of a directory is %d", len(j.names), MaxEntries)
	}
	slices.SortFunc(j.names, func(a, b dirent) int { return cmp.Compare(a.name, b.name) })
	j.names = slices.CompactFunc(j.names, func(a, b dirent) bool { return a.name == b.name })
	return nil
}

// loadRules reads the ignore files of a directory.
func (j *dirJob) loadRules() {
	var git, stet, exclude []byte
	if j.mayHold(gitIgnoreName) {
		git = readRules(j.fd, gitIgnoreName)
	}
	if j.mayHold(stetIgnoreName) {
		stet = readRules(j.fd, stetIgnoreName)
	}
	if j.parent == nil {
		exclude = readExclude(j.fd)
	}
	j.rules = newRules(j.rules, j.path, git, stet, exclude)
}

// mayHold reports whether a name can be in the directory. If not all names are known,
// it may be.
func (j *dirJob) mayHold(name string) bool {
	if j.hints != nil {
		return true
	}
	_, ok := slices.BinarySearchFunc(j.names, name, func(d dirent, name string) int { return cmp.Compare(d.name, name) })
	return ok
}

// readRules returns the content of an ignore file. A missing, unreadable, irregular
// or oversized one has no effect, as in git: more is captured then, and the file
// itself is reported if it could not be captured.
func readRules(d dirFD, name string) []byte {
	f, err := d.openFile(name)
	if err != nil {
		return nil
	}
	defer f.close()
	if st, err := f.stat(); err != nil || st.kind != isFile || st.size > maxIgnoreFile {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return nil
	}
	return data
}

// dirFailed handles a directory that could not be opened or listed.
func (w *worker) dirFailed(j *dirJob, err error) error {
	if j.parent == nil {
		return err
	}
	if err := w.leaveOut(j.parent, j.parent.names[j.slot].name, true, err); err != nil {
		return err
	}
	j.parent.slots[j.slot] = slot{}
	return w.done(j.parent)
}

// done counts one part of a directory as done and finishes it after the last.
func (w *worker) done(j *dirJob) error {
	if j.pending.Add(-1) > 0 {
		return nil
	}
	return w.finish(j)
}

// finish turns the results into an index directory and a node. The worker that
// finishes the last part of a directory calls it, and so on upwards.
func (w *worker) finish(j *dirJob) error {
	ref, err := w.build(j)
	if err != nil {
		return err
	}
	j.result = ref
	p := j.parent
	w.spare.take(j)
	if p == nil {
		return nil
	}
	s := &p.slots[j.slot]
	s.e.id, s.sub = ref.node, ref
	s.same = s.same && ref == j.prevRef && p.prevEntry(s.e.name).mode == s.e.mode
	return w.done(p)
}

// prevEntry returns the index entry of a name, which must exist.
func (j *dirJob) prevEntry(name string) *indexEntry {
	i, _ := j.prev.find(name)
	return &j.prev.entries[i]
}

// build returns the directory's reference: the old one if nothing changed.
func (w *worker) build(j *dirJob) (*dirRef, error) {
	sum, listed := j.ruleSum(), j.listedStamp(&w.s.trust)
	if j.unchanged(sum) {
		if j.keepsStamp(listed, &w.s.trust) {
			return j.prevRef, nil
		}
		d := *j.prev // never changes, so its parts may be shared
		d.listed = listed
		if j.borrowed {
			d.entries, d.subs = slices.Clone(d.entries), slices.Clone(d.subs)
		}
		return newRef(&d), nil
	}
	d := &indexDir{rules: sum, listed: listed}
	next := 0
	if j.hints != nil { // names not examined stay
		for i := range j.prev.entries {
			e := &j.prev.entries[i]
			for next < len(j.names) && j.names[next].name < e.name {
				d.add(&j.slots[next])
				next++
			}
			if next < len(j.names) && j.names[next].name == e.name {
				continue
			}
			d.add(&slot{found: true, e: *e, sub: subOf(e, j.prev.subs)})
		}
	}
	for ; next < len(j.names); next++ {
		d.add(&j.slots[next])
	}
	if err := w.encode(j, d); err != nil {
		return nil, err
	}
	return newRef(d), nil
}

// ruleSum is the fingerprint of the rules applied to the names. If rules do not
// apply, a later scan in another mode must not reuse the verdicts. Nor may it assume
// that unexamined names were checked by newer rules, or examined ones by older rules.
func (j *dirJob) ruleSum() ruleSum {
	var sum ruleSum
	switch {
	case j.forced:
		sum = ruleSum{1}
	case j.partial:
		sum = ruleSum{2}
	default:
		sum = j.rules.fingerprint()
	}
	if j.hints != nil && sum != j.prev.rules {
		return ruleSum{3} // mixed rules
	}
	return sum
}

func (j *dirJob) unchanged(sum ruleSum) bool {
	if j.prev == nil || j.prev.rules != sum {
		return false
	}
	same := 0
	for i := range j.slots {
		s := &j.slots[i]
		if s.found != s.same {
			return false
		}
		if s.found {
			same++
		} else if _, was := j.prev.find(j.names[i].name); was {
			return false
		}
	}
	return j.hints != nil || same == len(j.prev.entries)
}

func (d *indexDir) add(s *slot) {
	if !s.found {
		return
	}
	e := s.e
	e.sub = -1
	if s.sub != nil {
		e.sub = int32(len(d.subs))
		d.subs = append(d.subs, s.sub)
	}
	d.entries = append(d.entries, e)
}

// encode makes the node of a new index directory and stores it.
func (w *worker) encode(j *dirJob, d *indexDir) error {
	entries := make([]Entry, 0, len(d.entries))
	for i := range d.entries {
		if e := &d.entries[i]; e.captured() {
			entries = append(entries, e.entry())
		}
	}
	data, err := EncodeNode(entries)
	if err != nil {
		return inDir(j.path, err)
	}
	b := blob.New(data)
	d.node = b.ID
	if j.prev != nil && j.prev.node == d.node {
		return nil // already stored: only stat data changed
	}
	if j.prev != nil {
		b.Like = j.prev.node
	}
	return w.put(b)
}
