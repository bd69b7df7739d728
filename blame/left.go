package blame

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

// Left says how many of the lines that a turn wrote are left, file by file.
type Left struct {
	// Origin is the turn, or the checkpoint if that belongs to no turn.
	Origin Origin
	Files  []LeftFile
}

// LeftFile is a file in which a turn wrote lines.
type LeftFile struct {
	// Path is its name at the end of the turn, and Now its present name; "" if it is
	// gone.
	Path, Now string
	// Written counts the lines that the turn wrote and did not change again; Left counts
	// those that are still there.
	Written, Left int
	// Changed says who changed or removed the others, oldest first.
	Changed []Changed
}

// Changed counts the lines that one author changed or removed. Rewound means that a
// rewind reverted them.
type Changed struct {
	Origin  Origin
	Lines   int
	Rewound bool
}

// Left returns what is left, at a checkpoint or at the present, of the lines that the turn of
// an earlier checkpoint wrote. For a checkpoint outside a turn it follows the changes that the
// checkpoint saw.
func (r *Reader) Left(ctx context.Context, rec, now *checkpoint.Record) (*Left, error) {
	if rec.Kind == checkpoint.Import || rec.Workspace != now.Workspace {
		return nil, fmt.Errorf("%w: %s is not a checkpoint of this workspace", ErrNoLines, rec.Name())
	}
	l := &lines{r: r, rec: rec, by: rec.Writer()}
	if err := l.read(ctx, now); err != nil {
		return nil, err
	}
	wrote, err := l.wrote(ctx)
	if err != nil {
		return nil, err
	}
	out := &Left{Origin: originOf(&checkpoint.Version{At: rec, Writer: l.by})}
	for _, path := range wrote {
		file, err := l.file(ctx, path)
		if err != nil {
			return nil, err
		}
		if file.Written > 0 {
			out.Files = append(out.Files, *file)
		}
	}
	return out, nil
}

// lines follows the lines of a turn.
type lines struct {
	r       *Reader
	rec     *checkpoint.Record
	by      checkpoint.Writer
	records []*checkpoint.Record // oldest first, up to the present
}

func (l *lines) read(ctx context.Context, now *checkpoint.Record) error {
	opts := &checkpoint.ListOptions{Before: now.ID}
	for rec, err := range l.r.checkpoints.ListWorkspace(ctx, now.Workspace, opts) {
		if err != nil {
			return err
		}
		l.records = append(l.records, rec)
	}
	slices.Reverse(l.records)
	l.records = append(l.records, now)
	return nil
}

// own reports whether a change is the turn's.
func (l *lines) own(by checkpoint.Writer, seen *checkpoint.Record) bool {
	if l.by.Class != checkpoint.ByConversation || l.by.Turn == 0 {
		return seen.ID == l.rec.ID
	}
	return by.Class == checkpoint.ByConversation && by.Conversation == l.by.Conversation && by.Turn == l.by.Turn && !by.Rewind
}

// written is a file at the last checkpoint at which the turn may have changed it.
type written struct {
	path string
	at   int // index of the checkpoint
}

// wrote lists the files that the turn may have changed.
func (l *lines) wrote(ctx context.Context) ([]written, error) {
	var out []written
	for i, rec := range l.records {
		by := rec.Writer()
		if i == 0 || !l.own(by, rec) && !slices.Contains(by.Among, l.by.Conversation) {
			continue
		}
		changes, err := workspace.Diff(ctx, l.r.blobs, l.records[i-1].Tree, rec.Tree)
		if err != nil {
			return nil, err
		}
		for _, c := range linediff.Files(changes, nil) {
			out = slices.DeleteFunc(out, func(w written) bool { return w.path == c.Path })
			if c.After != nil {
				out = append(out, written{c.Path, i})
			}
		}
	}
	slices.SortFunc(out, func(a, b written) int {
		if a.path < b.path {
			return -1
		}
		return 1
	})
	return out, nil
}

// file counts the lines of one file.
func (l *lines) file(ctx context.Context, w written) (*LeftFile, error) {
	name, there, err := l.follow(ctx, w)
	if err != nil {
		return nil, err
	}
	now := l.records[len(l.records)-1]
	versions, err := l.r.checkpoints.Versions(ctx, name, now, l.r.renamed)
	if err != nil {
		return nil, err
	}
	file := &LeftFile{Path: w.path}
	if there {
		file.Now = name
	}
	return file, l.count(ctx, file, versions.List)
}

// follow returns the present name of a file, and whether it still exists.
func (l *lines) follow(ctx context.Context, w written) (name string, there bool, err error) {
	names := []string{w.path} // that it had, the last one last
	for i := w.at + 1; i < len(l.records); i++ {
		before, after := l.records[i-1].Tree, l.records[i].Tree
		if before == after {
			continue
		}
		changes, err := workspace.Diff(ctx, l.r.blobs, before, after)
		if err != nil {
			return "", false, err
		}
		next, err := l.moved(ctx, names, changes, l.records[i].Kind == checkpoint.Rewound)
		if err != nil {
			return "", false, err
		}
		if next != "" {
			names = append(slices.DeleteFunc(names, func(n string) bool { return n == next }), next)
		}
	}
	name = names[len(names)-1]
	_, err = workspace.Lookup(ctx, l.r.blobs, l.records[len(l.records)-1].Tree, name)
	if err != nil && !errors.Is(err, errNotExist) {
		return "", false, err
	}
	return name, err == nil, nil
}

// moved returns the new name of a file that is gone from its last one. A rewind may give it
// an earlier name back.
func (l *lines) moved(ctx context.Context, names []string, changes []workspace.Change, rewound bool) (string, error) {
	last := names[len(names)-1]
	gone := slices.IndexFunc(changes, func(c workspace.Change) bool { return c.Path == last && c.After == nil })
	if gone < 0 {
		return "", nil
	}
	for _, c := range changes {
		if c.Before != nil || c.After.Kind != workspace.File {
			continue
		}
		if rewound {
			if slices.Contains(names, c.Path) {
				return c.Path, nil
			}
			continue
		}
		was, err := l.r.renamed(ctx, c, changes[gone:gone+1])
		if err != nil {
			return "", err
		}
		if was != nil {
			return c.Path, nil
		}
	}
	return "", nil
}

// count follows the lines of the turn through the versions after it.
func (l *lines) count(ctx context.Context, file *LeftFile, versions []checkpoint.Version) error {
	var chain []int // oldest first
	for v := len(versions) - 1; v >= 0; v = versions[v].From {
		chain = append(chain, v)
	}
	slices.Reverse(chain)
	last := -1
	for i, v := range chain {
		if l.own(versions[v].Writer, versions[v].At) {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	tracer := newTracer(ctx, l.r.steps(ctx, versions))
	alive := make(map[Place]bool)
	changed := make(map[Place]int) // version that took a line away
	for i, v := range chain[last:] {
		places, err := tracer.places(v)
		if err != nil {
			return err
		}
		here := make(map[Place]bool)
		for _, p := range places {
			if origin := versions[p.Version]; !origin.Rewound && l.own(origin.Writer, origin.At) && (i == 0 || alive[p]) {
				here[p] = true
				delete(changed, p)
			}
		}
		if i == 0 {
			alive = here
			continue
		}
		for p := range alive {
			if _, gone := changed[p]; !gone && !here[p] {
				changed[p] = v
			}
		}
	}
	file.Written, file.Left = len(alive), len(alive)-len(changed)
	by := make([]int, len(versions))
	for _, v := range changed {
		by[v]++
	}
	for v, n := range by {
		if n > 0 {
			file.Changed = append(file.Changed, Changed{Origin: originOf(&versions[v]), Lines: n, Rewound: versions[v].Rewound})
		}
	}
	return nil
}
