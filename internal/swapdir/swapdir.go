package swapdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is. After each of them everything can be
// put back with RollBack.
var (
	// ErrChanged says that another program changed a path meanwhile.
	ErrChanged = fault.Named(fault.Stale, "file-changed", "file changed during the rewind")
	// ErrOtherFileSystem says that a path lies on another file system than the
	// directory, so that nothing can be moved to or from it in one step.
	ErrOtherFileSystem = fault.Named(fault.Unsupported, "other-file-system", "lies on another file system than the workspace")
	// ErrTimeout says that the file system was too slow.
	ErrTimeout = fault.Named(fault.Busy, "file-system-slow", "file system is too slow")
	// ErrBadPath says that a path could lead out of the directory. Nothing was done.
	ErrBadPath = fault.Named(fault.Invalid, "path-leads-out", "path leads out of the directory")
)

// Kind is what an object is.
type Kind int

// The kinds. Other objects, such as sockets, are never changed.
const (
	File Kind = iota + 1
	Directory
	Symlink
)

// Object is what is at a path, or is to come there.
type Object struct {
	Kind Kind
	// Mode holds the permission bits, 0o7777 at most. A link has none.
	Mode uint32
}

func (o *Object) isDir() bool { return o != nil && o.Kind == Directory }

// Change is what becomes of one path, which is relative to the directory and has
// slashes between its names. A directory that goes must be empty by then: what it holds
// must be among the changes, and so must each missing directory above what comes.
type Change struct {
	Path string
	// Before is what is there and After what is to be there; nil is nothing.
	Before, After *Object
}

// Contents supplies and recognises the contents of the changes. Its methods are called
// by several goroutines at once.
type Contents interface {
	// WriteFile writes the whole new content of the file at path to w.
	WriteFile(ctx context.Context, path string, w io.Writer) error
	// LinkTarget returns the target of the new link at path.
	LinkTarget(ctx context.Context, path string) (string, error)
	// IsOld reports whether r reads the content that the file at path had before. It
	// need not read on when it knows.
	IsOld(path string, r io.Reader) (bool, error)
}

// Options shape a Root; nil works.
type Options struct {
	// Hook is called before every call that changes the directory; an error takes the
	// place of the call. Tests inject faults with it.
	Hook func(call, path string) error
	// OneByOne handles files one after the other instead of a few side by side.
	OneByOne bool
	// NoModes leaves permission bits alone, for a file system that has none; see Traits.
	NoModes bool
	// Folds is for a file system that takes several spellings for one name; see Traits.
	Folds bool
}

// Root is a directory that is open for changes.
type Root struct{ d *disk }

// Open opens a directory. The caller closes it.
func Open(path string, opts *Options) (*Root, error) {
	if opts == nil {
		opts = &Options{}
	}
	d, err := openDisk(path, opts.Hook)
	if err != nil {
		return nil, err
	}
	if opts.OneByOne {
		d.workers = 1
	}
	d.noModes, d.folds = opts.NoModes, opts.Folds
	return &Root{d: d}, nil
}

// Close releases the directory. It changes nothing.
func (r *Root) Close() { r.d.close() }

// Begin makes the staging directory, under a name of the caller's choice, for some
// changes. Nothing else changes, and nothing is durable yet. The caller closes the Swap.
func (r *Root) Begin(name string, changes []Change, contents Contents) (*Swap, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	for i := range changes {
		if err := checkPath(changes[i].Path); err != nil {
			return nil, err
		}
	}
	stage, err := r.d.stage(name, true)
	if err != nil {
		return nil, err
	}
	return &Swap{root: r, name: name, stage: stage, steps: plan(changes), contents: contents}, nil
}

// Resume returns the Swap that a journal describes, to be taken back: only RollBack,
// Remove and Close are of use. It does not matter whether the staging directory still
// exists. The caller closes the Swap.
func (r *Root) Resume(name string, steps []Step) (*Swap, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	s := &Swap{root: r, name: name, steps: make([]*step, len(steps))}
	for i := range steps {
		if err := checkPath(steps[i].Path); err != nil {
			return nil, err
		}
		s.steps[i] = &step{Step: steps[i]}
	}
	stage, err := r.d.stage(name, false)
	if err != nil && !isNotExist(err) {
		return nil, err
	}
	s.stage = stage
	return s, nil
}

// RemoveStage deletes a staging directory with everything in it. One that does not
// exist is not an error.
func (r *Root) RemoveStage(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return r.d.removeStage(name)
}

// Stages lists the names in a directory that begin with a prefix, in no order: what
// was staged under such names and not removed.
func Stages(path, prefix string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out, nil
}

// Swap is a change of many paths under way. Its methods must not be called at once.
type Swap struct {
	root     *Root
	name     string
	stage    *stageDir // nil if Resume found none
	steps    []*step
	contents Contents
	began    int64 // when the first step was taken, by the clock that stamps files
}

// Name returns the name of the staging directory.
func (s *Swap) Name() string { return s.name }

// Close releases the staging directory. It changes nothing.
func (s *Swap) Close() {
	if s.stage != nil {
		s.stage.close()
	}
	s.stage = nil
}

// Stage writes the new contents to the staging directory. When it returns nil, they and
// their names are durable. A crash leaves the staging directory and nothing else.
func (s *Swap) Stage(ctx context.Context) error { return s.stage.fill(ctx, s.steps, s.contents) }

// Steps returns what Run does, in order, for a journal. After Stage the steps identify
// what was staged; RollBack needs that. The journal must be durable before Run.
func (s *Swap) Steps() []Step {
	out := make([]Step, len(s.steps))
	for i, st := range s.steps {
		out[i] = st.Step
	}
	return out
}

// Check looks at what the steps are about to replace, and remembers which objects
// exactly these are. It returns ErrChanged if one is missing, or if something is where
// nothing should be. A caller that compares contents after Check, and then calls Run,
// knows that Run replaces what it compared. It changes nothing.
func (s *Swap) Check() error { return s.stage.check(s.steps) }

// RunOptions shape Run; nil works.
type RunOptions struct {
	// Timeout returns how long a number of steps may take; nil sets no limit.
	Timeout func(steps int) time.Duration
	// Progress is called with the number of steps done and of all steps.
	Progress func(done, all int)
}

// Run takes the steps. When it returns nil, every path is as its change says, and the
// names are durable; what was there is in the staging directory. A crash, and an error,
// leave some of the steps taken: RollBack takes them back.
func (s *Swap) Run(ctx context.Context, opts *RunOptions) error {
	if opts == nil {
		opts = &RunOptions{}
	}
	s.began = stampClock()
	return s.stage.run(ctx, s.steps, opts)
}

// Written returns, by path, the files that Run moved into place and that need not be
// read back: while they were staged nobody else could reach them, and a write since then
// shows in their stamps. A file that was staged in the very tick in which the first step
// was taken is not among them.
func (s *Swap) Written() map[string]Staged {
	m := make(map[string]Staged, len(s.steps))
	for _, st := range s.steps {
		if st.stages() && st.to.Kind == File && st.Staged.Mtime < s.began {
			m[st.Path] = st.Staged
		}
	}
	return m
}

// RollBack takes steps back, the last one first, however many were taken, and returns
// the paths that it left alone because another program changed them after the steps
// were taken. When it returns without an error, all other paths are as they were before Run,
// and durable. It may be repeated after an error or a crash.
//
// If the staging directory was removed, nothing can be put back: RollBack then returns
// the paths that were visibly changed.
func (s *Swap) RollBack() (left []string, err error) {
	if s.stage == nil {
		return s.root.d.taken(s.steps)
	}
	return s.stage.rollback(s.steps)
}

// Remove deletes the staging directory with everything in it, which is no longer needed
// once the journal is gone. A crash leaves some of it, for RemoveStage.
func (s *Swap) Remove() error {
	s.Close()
	return s.root.d.removeStage(s.name)
}

// checkName refuses the name of a staging directory that leads elsewhere.
func checkName(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("%w: %q", ErrBadPath, name)
	}
	return checkPath(name)
}

// checkPath refuses a path that could lead elsewhere, or nowhere.
func checkPath(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
			return fmt.Errorf("%w: %q", ErrBadPath, path)
		}
	}
	return nil
}

// splitPath splits a path into that of the directory that holds it, which is ""
// for the root, and its last name.
func splitPath(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
