package checkpoint

import (
	"bytes"
	"context"
	"fmt"

	"znkr.io/diff"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// Markers that MergeMarkers writes around lines that collide.
const (
	markerMine   = "<<<<<<< present\n"
	markerMiddle = "=======\n"
	markerTheirs = ">>>>>>> rewind\n"
)

// MergeLines applies what changed from base to theirs to mine, line by line. It
// returns the result and the number of places where both changed the same lines in
// different ways; there the result has both versions between markers.
func MergeLines(base, mine, theirs []byte) (merged []byte, collisions int) {
	b, m, t := splitLines(base), splitLines(mine), splitLines(theirs)
	ours := diff.Hunks(b, m, diff.Context(0))
	other := diff.Hunks(b, t, diff.Context(0))
	var out bytes.Buffer
	pos := 0 // in b
	for len(ours) > 0 || len(other) > 0 {
		z := nextZone(ours, other)
		writeLines(&out, b[pos:z.from])
		mineHere, n := z.side(m, ours)
		theirsHere, k := z.side(t, other)
		ours, other = ours[n:], other[k:]
		switch {
		case n == 0 || equalLines(mineHere, theirsHere):
			writeLines(&out, theirsHere)
		case k == 0:
			writeLines(&out, mineHere)
		default:
			collisions++
			collision(&out, mineHere, theirsHere)
		}
		pos = z.to
	}
	writeLines(&out, b[pos:])
	return out.Bytes(), collisions
}

// zone is a range of base lines that at least one side changed, and that no
// change crosses.
type zone struct{ from, to int }

// nextZone returns the first zone. Changes that touch belong together, so that
// an insertion next to a changed line counts as a collision.
func nextZone(a, b []diff.Hunk[string]) zone {
	var z zone
	switch {
	case len(b) == 0 || len(a) > 0 && a[0].PosX <= b[0].PosX:
		z = zone{a[0].PosX, a[0].EndX}
	default:
		z = zone{b[0].PosX, b[0].EndX}
	}
	for grown := true; grown; {
		grown = false
		for _, hunks := range [2][]diff.Hunk[string]{a, b} {
			for _, h := range hunks {
				if h.PosX > z.to {
					break
				}
				if h.EndX > z.to {
					z.to, grown = h.EndX, true
				}
			}
		}
	}
	return z
}

// side returns what one side has in the zone, and how many of its changes are
// in it.
func (z zone) side(lines []string, hunks []diff.Hunk[string]) ([]string, int) {
	n := 0
	for n < len(hunks) && hunks[n].PosX <= z.to {
		n++
	}
	if n == 0 {
		return nil, 0
	}
	first, last := hunks[0], hunks[n-1]
	from := first.PosY - (first.PosX - z.from)
	to := last.EndY + (z.to - last.EndX)
	return lines[from:to], n
}

func collision(out *bytes.Buffer, mine, theirs []string) {
	out.WriteString(markerMine)
	writeLines(out, mine)
	endLine(out)
	out.WriteString(markerMiddle)
	writeLines(out, theirs)
	endLine(out)
	out.WriteString(markerTheirs)
}

func endLine(out *bytes.Buffer) {
	if b := out.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		out.WriteByte('\n')
	}
}

func writeLines(out *bytes.Buffer, lines []string) {
	for _, l := range lines {
		out.WriteString(l)
	}
}

func equalLines(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// mergeAll makes the contents of the actions that need merging. Files that do not
// merge stay conflicts and say why. Conflicts for which no merge was chosen say
// whether one would be possible.
func (w *Workspace) mergeAll(ctx context.Context, actions []Action, choice func(string) Choice) error {
	for i := range actions {
		a := &actions[i]
		var err error
		switch {
		case len(a.undo) > 0:
			err = w.mergeOne(ctx, a, choice(a.Path) == MergeMarkers)
		case a.Kind == Conflict:
			err = w.offerMerge(ctx, a)
		}
		if err != nil {
			return fmt.Errorf("merge %q: %w", a.Path, err)
		}
	}
	return nil
}

// sameLines is why lines do not merge without markers.
const sameLines = "the same lines were changed on both sides"

// draft is a version of a file, with its text if that was merged and is not stored.
type draft struct {
	entry *workspace.Entry
	text  []byte
	fresh bool
}

func (w *Workspace) mergeOne(ctx context.Context, a *Action, markers bool) error {
	now, why, err := w.revert(ctx, a.Before, a.undo, markers)
	if err != nil {
		return err
	}
	if why != "" {
		a.NoMerge = why
		return nil
	}
	a.undo = nil
	if sameState(now.entry, a.Before) {
		a.Kind, a.Reason, a.own = Keep, "nothing is left to take back", false
		return nil
	}
	if now.fresh {
		if err := w.s.blobs.Put(ctx, blob.New(now.text)); err != nil {
			return err
		}
	}
	a.become(now.entry)
	a.Merged = now.fresh
	return nil
}

// offerMerge finds out whether a merge would resolve a conflict, and stores nothing.
func (w *Workspace) offerMerge(ctx context.Context, a *Action) error {
	switch {
	case a.Why == WhyHolds:
		a.NoMerge = "it " + a.Reason
		return nil
	case a.Why == WhyInTheWay:
		a.NoMerge = a.Reason
		return nil
	case len(a.offer) == 0:
		a.NoMerge = "it is not known which lines to take back"
		return nil
	}
	_, why, err := w.revert(ctx, a.Before, a.offer, false)
	a.offer = nil
	if isDamage(err) {
		why, err = "a version of it is lost", nil
	}
	a.NoMerge = why
	return err
}

// revert undoes changes, newest first, in the current content. It returns why that
// does not work, or nothing.
func (w *Workspace) revert(ctx context.Context, from *workspace.Entry, changes []inverse, markers bool) (now draft, why string, err error) {
	now.entry = from
	for _, inv := range changes {
		switch {
		case sameState(now.entry, inv.from):
			now = draft{entry: inv.to}
		case sameState(now.entry, inv.to):
		default:
			if now, why, err = w.mergeStep(ctx, now, inv, markers); err != nil || why != "" {
				return now, why, err
			}
		}
	}
	return now, "", nil
}

// mergeStep reverts one change in the current content, or returns why that does not
// work.
func (w *Workspace) mergeStep(ctx context.Context, now draft, inv inverse, markers bool) (draft, string, error) {
	if !isFile(now.entry) || !isFile(inv.from) || !isFile(inv.to) {
		return now, "it was created, removed or replaced, not only changed", nil
	}
	var texts [3][]byte
	for i, e := range []*workspace.Entry{inv.from, now.entry, inv.to} {
		if i == 1 && now.fresh {
			texts[i] = now.text
			continue
		}
		text, ok, err := textOf(ctx, w.s.blobs, e)
		if err != nil {
			return now, "", err
		}
		if !ok {
			return now, "it is binary or too large", nil
		}
		texts[i] = text
	}
	merged, collisions := MergeLines(texts[0], texts[1], texts[2])
	if collisions > 0 && !markers {
		return now, sameLines, nil
	}
	mode := now.entry.Mode
	if now.entry.Mode == inv.from.Mode {
		mode = inv.to.Mode
	}
	entry := &workspace.Entry{Name: now.entry.Name, Kind: workspace.File, Mode: mode, Size: int64(len(merged)), ID: blob.Sum(merged)}
	return draft{entry: entry, text: merged, fresh: true}, "", nil
}

func isFile(e *workspace.Entry) bool { return e != nil && e.Kind == workspace.File }
