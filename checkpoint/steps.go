package checkpoint

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/workspace"
)

// step is one change of one path.
type step struct {
	kind stetv1.JournalStepKind
	path string
	slot int
	from *workspace.Entry // what the path has, for a swap or a removal
	to   *workspace.Entry // what is staged, for a swap or an install

	staged  stat   // of what is staged
	old     stat   // of what the path had at the last check
	oldMode uint32 // for a change of mode
	newMode uint32
}

const (
	stepRemove  = stetv1.JournalStepKind_JOURNAL_STEP_KIND_REMOVE
	stepSwap    = stetv1.JournalStepKind_JOURNAL_STEP_KIND_SWAP
	stepInstall = stetv1.JournalStepKind_JOURNAL_STEP_KIND_INSTALL
	stepChmod   = stetv1.JournalStepKind_JOURNAL_STEP_KIND_CHMOD
)

func (s *step) newSlot() string  { return "n" + strconv.Itoa(s.slot) }
func (s *step) oldSlot() string  { return "o" + strconv.Itoa(s.slot) }
func (s *step) twinSlot() string { return "t" + strconv.Itoa(s.slot) }
func (s *step) stages() bool     { return s.kind == stepSwap || s.kind == stepInstall }

// ownerWrites are the permission bits that a directory needs while its owner
// changes what it holds.
const ownerWrites = 0o300

// steps lists, in order, what the actions of a plan need: directories are opened
// up first, then things go, children before parents, then things change, then
// things come, parents before children, and last directories are closed down.
func steps(actions []Action) []*step {
	var opens, removes, swaps, installs, closes []*step
	for i := range actions {
		a := &actions[i]
		if !a.Changes() {
			continue
		}
		fromDir, toDir := isDir(a.Before), isDir(a.After)
		if fromDir && a.Before.Mode&ownerWrites != ownerWrites {
			opens = append(opens, chmod(a.Path, a.Before.Mode, a.Before.Mode|ownerWrites))
		}
		switch {
		case fromDir && toDir:
		case a.Before != nil && a.After != nil && !fromDir && !toDir:
			swaps = append(swaps, &step{kind: stepSwap, path: a.Path, from: a.Before, to: a.After})
		default:
			if a.Before != nil {
				removes = append(removes, &step{kind: stepRemove, path: a.Path, from: a.Before})
			}
			if a.After != nil {
				installs = append(installs, &step{kind: stepInstall, path: a.Path, to: a.After})
			}
		}
		if toDir {
			open := a.After.Mode | ownerWrites // as it is staged
			if fromDir {
				open = a.Before.Mode | ownerWrites
			}
			if open != a.After.Mode {
				closes = append(closes, chmod(a.Path, open, a.After.Mode))
			}
		}
	}
	up := func(a, b *step) int { return cmp.Compare(a.path, b.path) }
	down := func(a, b *step) int { return cmp.Compare(b.path, a.path) }
	slices.SortFunc(opens, up)
	slices.SortFunc(removes, down)
	slices.SortFunc(installs, up)
	slices.SortFunc(closes, down)
	all := slices.Concat(opens, removes, swaps, installs, closes)
	for i, s := range all {
		s.slot = i
	}
	return all
}

// setgid is the permission bit that a file gets only from somebody who is in its
// group, and from root.
const setgid = 0o2000

// cameTo reports whether a mode is what a change to another one came to.
func cameTo(got, asked uint32) bool { return got == asked || got == asked&^setgid }

// lacksSetgid reports whether a state is the one asked for but for that bit.
func lacksSetgid(got, asked *workspace.Entry) bool {
	if got == nil || asked == nil || asked.Mode&setgid == 0 {
		return false
	}
	less := *asked
	less.Mode &^= setgid
	return sameState(got, &less)
}

func chmod(path string, from, to uint32) *step {
	return &step{kind: stepChmod, path: path, oldMode: from, newMode: to}
}

// paths lists the paths that steps change, each once.
func stepPaths(steps []*step) []string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// encodeSteps returns the blob that a journal names.
func encodeSteps(steps []*step) (blob.Blob, error) {
	m := &stetv1.JournalSteps{Steps: make([]*stetv1.JournalStep, len(steps))}
	for i, s := range steps {
		m.Steps[i] = &stetv1.JournalStep{
			Kind: s.kind, Path: []byte(s.path), Slot: uint64(s.slot), OldMode: s.oldMode, NewMode: s.newMode,
			NewInode: s.staged.ino, NewSize: uint64(s.staged.size), NewMtimeNs: s.staged.mtime, NewIsDir: s.staged.isDir(),
		}
	}
	data, err := marshal(m)
	return blob.New(data), err
}
