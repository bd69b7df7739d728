package blame

import (
	"context"
	"io/fs"
	"path"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

var errNotExist = fs.ErrNotExist

// depth is how many earlier versions are searched for a line that a rewind restored
// and that neither its target nor the version before it has.
const depth = 100

// steps returns, for each version, the versions that it may come from.
func (r *Reader) steps(ctx context.Context, versions []checkpoint.Version) []Step {
	steps := make([]Step, len(versions))
	texts := &texts{r: r, versions: versions}
	for i := range versions {
		steps[i].Text = func() ([]byte, error) { return texts.at(ctx, i) }
		switch from := versions[i].From; {
		case versions[i].Rewound:
			steps[i].From = restored(versions, i)
		case from >= 0:
			steps[i].From = []int{from}
		}
	}
	return steps
}

// restored returns what a version that a rewind made comes from: the version that its path
// had at the target, or the newest with the same content. A rewind that merged has the lines
// of its target, of the present before it, and of earlier versions.
func restored(versions []checkpoint.Version, i int) []int {
	v := &versions[i]
	var before []int // of the same path, newest first
	target := none
	for j := i - 1; j >= 0; j-- {
		if versions[j].Path != v.Path {
			continue
		}
		before = append(before, j)
		if target == none && v.Target != "" && versions[j].At.ID <= v.Target { // ids are in the order of the checkpoints
			target = j
		}
	}
	if target != none && sameContent(&versions[target], v) {
		return []int{target}
	}
	for _, j := range before {
		if sameContent(&versions[j], v) {
			return []int{j}
		}
	}
	var from []int
	if target != none {
		from = append(from, target)
	}
	if v.From >= 0 && v.From != target {
		from = append(from, v.From)
	}
	for _, j := range before[:min(len(before), depth)] {
		if j != target && j != v.From {
			from = append(from, j)
		}
	}
	return from
}

func sameContent(a, b *checkpoint.Version) bool {
	if a.Entry == nil || b.Entry == nil {
		return a.Entry == b.Entry
	}
	return a.Entry.Kind == b.Entry.Kind && a.Entry.ID == b.Entry.ID && a.Entry.Chunked == b.Entry.Chunked
}

// content returns the lines of a version. For one without lines, such as a binary
// file, it is empty, so the next version starts over.
func (r *Reader) content(ctx context.Context, e *workspace.Entry) ([]byte, error) {
	if !hasLines(e) {
		return nil, nil
	}
	text, err := workspace.ReadFile(ctx, r.blobs, *e)
	if err != nil || linediff.Binary(text) {
		return nil, err
	}
	return text, nil
}

// hasLines reports whether a version may have lines.
func hasLines(e *workspace.Entry) bool {
	return e != nil && e.Kind == workspace.File && e.Size <= linediff.MaxFile
}

// At most maxRemoved files are searched for the source of a rename, and a file counts
// as renamed if at least half of the lines of either version are the same.
const (
	maxRemoved = 200
	maxCompare = 1 << 20
)

// renamed finds the removed file that an added one was made from: one with the same content,
// preferably with the same name, or else the most similar one.
func (r *Reader) renamed(ctx context.Context, added workspace.Change, removed []workspace.Change) (*workspace.Change, error) {
	var exact *workspace.Change
	for i := range removed {
		if e := removed[i].Before; e.ID != added.After.ID || e.Chunked != added.After.Chunked || e.Size == 0 {
			continue
		}
		if exact == nil || path.Base(removed[i].Path) == path.Base(added.Path) {
			exact = &removed[i]
		}
	}
	if exact != nil || added.After.Kind != workspace.File || added.After.Size > maxCompare {
		return exact, nil
	}
	text, err := r.content(ctx, added.After)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	var best *workspace.Change
	most := 0.5
	for i := range removed[:min(len(removed), maxRemoved)] {
		e := removed[i].Before
		if e.Size > 2*added.After.Size || added.After.Size > 2*e.Size {
			continue // at least half is the same
		}
		was, err := r.content(ctx, e)
		if err != nil {
			return nil, err
		}
		alike, err := similarity(ctx, was, text)
		if err != nil {
			return nil, err
		}
		if alike >= most && (best == nil || alike > most) {
			best, most = &removed[i], alike
		}
	}
	return best, nil
}

// similarity is the share of the larger text's bytes in lines that both texts have.
func similarity(ctx context.Context, a, b []byte) (float64, error) {
	edits, err := linediff.Edits(ctx, a, b)
	if err != nil {
		return 0, err
	}
	old, all := linediff.Lines(a), max(len(a), len(b))
	same := len(a)
	for _, e := range edits {
		for _, line := range old[e.From : e.From+e.FromLen] {
			same -= len(line)
		}
	}
	return float64(same) / float64(max(all, 1)), nil
}
