package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// Version is what a path became at a checkpoint, and who changed it.
type Version struct {
	// At is the checkpoint that saw the version. It has no id for the present.
	At *Record
	// Path is where the version was then. It changes where the file was renamed.
	Path string
	// Entry is what was there; nil means nothing.
	Entry *workspace.Entry
	// Writer made the version. Its class is "" for one that existed at the oldest checkpoint.
	Writer Writer
	// From is the index in the list of the version that this one was made from: the one
	// before it, or that of another name. It is -1 if there is none, or if that is no
	// longer kept.
	From int
	// First means that the version already existed at the oldest checkpoint that is
	// kept.
	First bool
	// Rewound means that a rewind, an undo or a redo made the version. Target is the
	// checkpoint that it went to, or "" if it had none.
	Rewound bool
	Target  string
}

// Versions is the history of one path.
type Versions struct {
	// List is oldest first, and ends with the newest version of the path. It begins
	// where nothing older matters. It includes versions under other names of the file,
	// and earlier content under its name, as far as they matter.
	List []Version
	// Forgotten is the number of checkpoints before the first version that are no longer
	// kept. It is 0 if the history is whole, or goes back to the creation of the file.
	Forgotten uint64
	// Damaged are checkpoints that cannot be read. The authors of the changes around
	// them are unknown.
	Damaged []*UnreadableError
}

// RenamedFrom finds, among files that were removed between two checkpoints, the one
// that an added file was renamed from; nil if it is a new file.
type RenamedFrom func(ctx context.Context, added workspace.Change, removed []workspace.Change) (*workspace.Change, error)

// Versions returns the versions of a path of a workspace up to a checkpoint or, with the
// record of Workspace.Unsaved, up to now. It follows renames as from reports them; nil
// follows none.
func (s *Service) Versions(ctx context.Context, path string, to *Record, from RenamedFrom) (*Versions, error) {
	v := &versions{s: s, path: path, from: from, known: make(map[pathAt]*pathChange), out: &Versions{}}
	if err := v.read(ctx, to); err != nil {
		return nil, fmt.Errorf("versions of %q: %w", path, err)
	}
	if err := v.find(ctx); err != nil {
		return nil, fmt.Errorf("versions of %q: %w", path, err)
	}
	v.remember()
	if err := v.attribute(ctx); err != nil {
		return nil, fmt.Errorf("versions of %q: %w", path, err)
	}
	return v.out, nil
}

// Unsaved describes the workspace now, with a tree of Present, as the checkpoint that a
// rewind would save first. It has no id.
func (w *Workspace) Unsaved(ctx context.Context, tree blob.ID) (*Record, error) {
	st, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := w.unsaved(ctx, st, &Plan{})
	if err != nil {
		return nil, err
	}
	rec.Workspace, rec.Tree, rec.Number = w.id, tree, st.row.GetLastNumber()+1
	if st.tip != nil {
		rec.Parent = st.tip.ID
	}
	return rec, nil
}

// versions collects the versions of one path.
type versions struct {
	s       *Service
	path    string
	from    RenamedFrom
	records []*Record // oldest first
	changes []*pathChange
	known   map[pathAt]*pathChange
	seen    map[string]*seenTrees // by path
	out     *Versions
}

// pathChange is a change of a path between a checkpoint, by its index, and the one before it.
type pathChange struct {
	pathAt
	before, after *workspace.Entry
	from          *pathChange
	version       int // in the list
}

type pathAt struct {
	path string
	at   int
}

// read lists the checkpoints up to one.
func (v *versions) read(ctx context.Context, to *Record) error {
	w := &Workspace{s: v.s, id: to.Workspace}
	for rec, err := range w.newestFirst(ctx, to.ID) {
		var bad *UnreadableError
		if errors.As(err, &bad) {
			v.out.Damaged = append(v.out.Damaged, bad)
			continue
		}
		if err != nil {
			return err
		}
		v.records = append(v.records, rec)
	}
	slices.Reverse(v.records)
	v.records = append(v.records, to)
	workedOut(v.records)
	return nil
}

// find notes where the path changed, and where the paths changed that it was moved
// from. A rewind after a move to a name may have restored what was under that name
// before.
func (v *versions) find(ctx context.Context) error {
	walks := []pathAt{{v.path, len(v.records) - 1}}
	for len(walks) > 0 {
		walk := walks[len(walks)-1]
		more, err := v.walk(ctx, walk.path, walk.at)
		if err != nil {
			return err
		}
		walks = append(walks[:len(walks)-1], more...)
	}
	slices.SortFunc(v.changes, func(a, b *pathChange) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return strings.Compare(a.path, b.path)
	})
	return nil
}

// walk goes back through the trees from a checkpoint. A directory that two neighbours share
// is not read. It returns where else to look.
func (v *versions) walk(ctx context.Context, path string, at int) (more []pathAt, err error) {
	back := &pathBack{v: v}
	entry, err := back.at(ctx, path, at)
	if err != nil {
		return nil, err
	}
	var later *pathChange
	rewound := false
	note := func(c *pathChange) (known bool) {
		if old := v.known[c.pathAt]; old != nil {
			c, known = old, true
		} else {
			v.known[c.pathAt] = c
			v.changes = append(v.changes, c)
		}
		if later != nil {
			later.from = c
		}
		later = c
		return known
	}
	for i := at; i > 0; i-- {
		before, err := back.at(ctx, path, i-1)
		if err != nil {
			return nil, err
		}
		if sameContent(before, entry) {
			continue
		}
		change := &pathChange{pathAt: pathAt{path, i}, before: before, after: entry}
		if note(change) {
			return more, nil
		}
		rewound = rewound || v.records[i].Kind == Rewound
		if before == nil && v.records[i].Kind != Rewound {
			was, err := v.renamed(ctx, i, path, entry)
			if err != nil {
				return nil, err
			}
			if was == nil && !rewound {
				return more, nil // nothing older matters
			}
			if was != nil {
				if rewound {
					more = append(more, pathAt{path, i - 1})
				}
				path, before = was.Path, was.Before
				change.before = before
			}
		}
		entry = before
	}
	if entry != nil {
		note(&pathChange{pathAt: pathAt{path, 0}, after: entry})
		if first := v.records[0]; first.Parent != "" {
			v.out.Forgotten = max(first.Number, 2) - 1
		}
	}
	return more, nil
}

// renamed finds the file that was moved to a path between two neighbours.
func (v *versions) renamed(ctx context.Context, i int, path string, entry *workspace.Entry) (*workspace.Change, error) {
	if v.from == nil || entry == nil {
		return nil, nil
	}
	changes, err := workspace.Diff(ctx, v.s.blobs, v.records[i-1].Tree, v.records[i].Tree)
	if err != nil {
		return nil, err
	}
	var removed []workspace.Change
	for _, c := range changes {
		if c.After == nil && c.Before.Kind == entry.Kind {
			removed = append(removed, c)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	return v.from(ctx, workspace.Change{Path: path, After: entry}, removed)
}

// sameContent reports whether two entries of a path have the same content, regardless
// of their modes.
func sameContent(a, b *workspace.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.ID == b.ID && a.Chunked == b.Chunked || isDir(a) && isDir(b)
}

// attribute determines who made each change, by the rules of a rewind's plan.
func (v *versions) attribute(ctx context.Context) error {
	targets, err := v.targets(ctx)
	if err != nil {
		return err
	}
	changes := v.changes
	last := make(map[string]int) // version by path
	claims := make(map[string]claimed)
	for i, rec := range v.records {
		for ; len(changes) > 0 && changes[0].at == i; changes = changes[1:] {
			c := changes[0]
			version := Version{At: rec, Path: c.path, Entry: c.after, From: -1, First: i == 0}
			if c.from != nil {
				version.From = c.from.version
			}
			if i > 0 {
				version.Rewound, version.Target = rec.Kind == Rewound, targets[rec.ID]
				if version.Writer, err = v.writer(ctx, i, c); err != nil {
					return err
				}
			}
			c.version = len(v.out.List)
			last[c.path] = c.version
			v.out.List = append(v.out.List, version)
		}
		if rec.Conversation == "" || rec.Side == Before {
			continue
		}
		for path, n := range last {
			if slices.Contains(rec.Touched, path) {
				claims[path] = claim(rec, &v.out.List[n].Writer, n, claims[path])
			}
			if slices.Contains(rec.Shared, path) {
				claims[path] = contest(rec, &v.out.List[n].Writer, n, claims[path])
			}
		}
	}
	return nil
}

func (v *versions) writer(ctx context.Context, i int, c *pathChange) (Writer, error) {
	prev, rec := v.records[i-1], v.records[i]
	if !neighbours(prev, rec) {
		return Writer{Class: ByForgotten, Checkpoint: rec.ID}, nil
	}
	if c.before != nil {
		return rec.Writer(), nil
	}
	skipped, err := v.s.NotCaptured(ctx, prev)
	if err != nil {
		return Writer{}, err
	}
	if _, unseen := newBlind(skipped).at(c.path); unseen { // it existed, so it was not created now
		return Writer{Class: ByUnseen, Checkpoint: rec.ID}, nil
	}
	return rec.Writer(), nil
}

// targets returns the targets of the rewinds among the changes, by the checkpoint after
// each.
func (v *versions) targets(ctx context.Context) (map[string]string, error) {
	wanted := make(map[string]bool)
	for _, c := range v.changes {
		if rec := v.records[c.at]; rec.Kind == Rewound {
			wanted[rec.ID] = true
		}
	}
	targets := make(map[string]string, len(wanted))
	if len(wanted) == 0 {
		return targets, nil
	}
	for op, err := range v.s.Operations(ctx) {
		if err != nil {
			return nil, err
		}
		if wanted[op.After] {
			targets[op.After] = op.Target
			if delete(wanted, op.After); len(wanted) == 0 {
				break
			}
		}
	}
	return targets, nil
}
