package swapdir

import (
	"cmp"
	"slices"
	"strconv"
)

// StepKind is how a step changes its path. Journals keep the numbers.
type StepKind int

// The kinds of steps.
const (
	// Remove moves the path to a slot of the staging directory.
	Remove StepKind = 1
	// Exchange lets the path and a slot trade places.
	Exchange StepKind = 2
	// Install moves a slot to the path, where nothing is.
	Install StepKind = 3
	// Chmod changes the permission bits of a directory.
	Chmod StepKind = 4
)

// Step is one change of one path, as a journal keeps it.
type Step struct {
	Kind StepKind
	Path string
	// Slot is the number in the names of the staged objects: n<slot> is new and o<slot>
	// is old.
	Slot int
	// Staged identifies what was staged, for Exchange and Install.
	Staged Staged
	// OldMode and NewMode are the permission bits before and after, for Chmod.
	OldMode, NewMode uint32
}

// Staged tells the object that a step staged, unchanged, from others.
type Staged struct {
	Inode uint64 // 0 if nothing was staged
	Size  int64
	Mtime int64 // nanoseconds
	Dir   bool
}

// step is a step with what Run needs to know about it.
type step struct {
	Step
	from *Object // what the path has, for an exchange or a removal
	to   *Object // what is staged, for an exchange or an install
	old  stat    // of what the path had at the last check
}

func (s *step) newSlot() string  { return "n" + strconv.Itoa(s.Slot) }
func (s *step) oldSlot() string  { return "o" + strconv.Itoa(s.Slot) }
func (s *step) twinSlot() string { return "t" + strconv.Itoa(s.Slot) }
func (s *step) stages() bool     { return s.Kind == Exchange || s.Kind == Install }

// isStaged reports whether a file is the one that a step staged, unchanged.
func (s *step) isStaged(now stat) bool {
	if now.ino != s.Staged.Inode {
		return false
	}
	if s.Staged.Dir {
		return now.dir
	}
	return now.size == s.Staged.Size && now.mtime == s.Staged.Mtime
}

// ownerWrites are the permission bits that a directory needs while its owner
// changes what it holds.
const ownerWrites = 0o300

// plan lists, in order, what the changes need: directories are opened up first, then
// things go, children before parents, then things change, then things come, parents
// before children, and last directories are closed down.
func plan(changes []Change) []*step {
	var opens, removes, swaps, installs, closes []*step
	for i := range changes {
		c := &changes[i]
		fromDir, toDir := c.Before.isDir(), c.After.isDir()
		if fromDir && c.Before.Mode&ownerWrites != ownerWrites {
			opens = append(opens, chmod(c.Path, c.Before.Mode, c.Before.Mode|ownerWrites))
		}
		switch {
		case fromDir && toDir:
		case c.Before != nil && c.After != nil && !fromDir && !toDir:
			swaps = append(swaps, &step{Step: Step{Kind: Exchange, Path: c.Path}, from: c.Before, to: c.After})
		default:
			if c.Before != nil {
				removes = append(removes, &step{Step: Step{Kind: Remove, Path: c.Path}, from: c.Before})
			}
			if c.After != nil {
				installs = append(installs, &step{Step: Step{Kind: Install, Path: c.Path}, to: c.After})
			}
		}
		if toDir {
			open := c.After.Mode | ownerWrites // as it is staged
			if fromDir {
				open = c.Before.Mode | ownerWrites
			}
			if open != c.After.Mode {
				closes = append(closes, chmod(c.Path, open, c.After.Mode))
			}
		}
	}
	up := func(a, b *step) int { return cmp.Compare(a.Path, b.Path) }
	down := func(a, b *step) int { return cmp.Compare(b.Path, a.Path) }
	slices.SortFunc(opens, up)
	slices.SortFunc(removes, down)
	slices.SortFunc(installs, up)
	slices.SortFunc(closes, down)
	all := slices.Concat(opens, removes, swaps, installs, closes)
	for i, s := range all {
		s.Slot = i
	}
	return all
}

func chmod(path string, from, to uint32) *step {
	return &step{Step: Step{Kind: Chmod, Path: path, OldMode: from, NewMode: to}}
}

// setgid is the permission bit that only a member of the file's group, or root, can
// set.
const setgid = 0o2000

// cameTo reports whether a mode is what a change to another one came to.
func cameTo(got, asked uint32) bool { return got == asked || got == asked&^setgid }
