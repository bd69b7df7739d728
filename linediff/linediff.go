// Package linediff compares the versions of a file line by line, for people to read.
//
// It decides what is compared: which changes of a tree concern files, what counts as
// binary, which files are too large, and how a link is shown. The command line and
// the server lay out its results, so both show the same lines and the same sums.
//
//	changes, err := workspace.Diff(ctx, blobs, from, to)
//	for _, c := range linediff.Files(changes, paths) {
//		file, err := linediff.Compare(ctx, blobs, c)
//		fmt.Println(c.Path, file.Added, file.Removed)
//		fmt.Print(file.Unified())
//	}
//
// Package workspace finds which files changed, and package checkpoint who changed
// them. A renamed file is one removed and one added file. The time of a comparison is
// bounded for any versions, and a done context ends it.
package linediff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

const (
	// MaxFile is the size of the largest file whose lines are compared.
	MaxFile = 4 << 20

	fastDiff    = 128 << 10 // of both versions; above it a faster comparison is used
	looksBinary = 8000      // bytes in which a NUL makes a file binary
)

// Op is the change of a line.
type Op string

// The operations, as unified diffs write them.
const (
	Same   Op = " "
	Insert Op = "+"
	Delete Op = "-"
)

// File is a file in two versions.
type File struct {
	workspace.Change
	// Binary means that one of the versions is not text, and TooLarge that one is too
	// large to compare. There are no hunks then.
	Binary, TooLarge bool
	// Coarse means that the versions are long and very different, so some lines that
	// both have appear as removed and added. The hunks are still correct.
	Coarse bool
	// Added and Removed count lines.
	Added, Removed int
	Hunks          []Hunk
	// Old and New are the texts that were compared.
	Old, New []byte
}

// Hunk is a place where the versions differ, with some lines around it.
type Hunk struct {
	// From and To are the first lines of the hunk in the old and the new version, from
	// 0; FromLen and ToLen are its lengths there.
	From, FromLen, To, ToLen int
	Lines                    []Line
}

// Line is a line of a hunk.
type Line struct {
	Op Op
	// From and To are its numbers in the old and the new version, from 0; -1 if it is
	// not in that version.
	From, To int
	// Text has its newline, if there is one.
	Text string
}

// Files returns the changes of files and links at or below one of the paths. With no
// paths, or with the path ".", it returns all.
func Files(changes []workspace.Change, paths []string) []workspace.Change {
	var out []workspace.Change
	for _, c := range changes {
		if (isFile(c.Before) || isFile(c.After)) && asked(paths, c.Path) {
			out = append(out, c)
		}
	}
	return out
}

func isFile(e *workspace.Entry) bool { return e != nil && e.Kind != workspace.Dir }

func asked(paths []string, path string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
		return p == "." || path == p || strings.HasPrefix(path, p+"/")
	})
}

// Shown returns the beginnings of both versions up to the last line that the hunks take from
// each: removed lines from the old one, the others from the new one. It is for highlighting,
// which takes a while and has to begin at the first line.
func (f *File) Shown() (before, after []byte) {
	from, to := 0, 0
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if l.Op == Delete {
				from = max(from, l.From+1)
			} else {
				to = max(to, l.To+1)
			}
		}
	}
	return firstLines(f.Old, from), firstLines(f.New, to)
}

func firstLines(text []byte, n int) []byte {
	end := 0
	for range n {
		i := bytes.IndexByte(text[end:], '\n')
		if i < 0 {
			return text
		}
		end += i + 1
	}
	return text[:end]
}

// Binary reports whether the beginning of a content is not text.
func Binary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), looksBinary)], 0) >= 0 }

// Compare compares the versions of a file. If the store lacks the content, the error
// wraps blob.ErrNotFound.
func Compare(ctx context.Context, blobs blob.Store, c workspace.Change) (*File, error) {
	f := &File{Change: c}
	if c.Before != nil && c.After != nil && c.Before.ID == c.After.ID && c.Before.Kind == c.After.Kind {
		return f, nil // only the mode differs
	}
	for _, e := range []*workspace.Entry{c.Before, c.After} {
		if e != nil && e.Kind == workspace.File && e.Size > MaxFile {
			f.TooLarge = true
			return f, nil
		}
	}
	var err error
	if f.Old, err = content(ctx, blobs, c.Before); err == nil {
		f.New, err = content(ctx, blobs, c.After)
	}
	if errors.Is(err, blob.ErrTooLarge) { // too much new content to keep
		return &File{Change: c, TooLarge: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("compare %q: %w", c.Path, err)
	}
	if f.Binary = Binary(f.Old) || Binary(f.New); !f.Binary {
		err = f.compare(ctx)
	}
	return f, err
}

// Texts compares two texts that are not in a store.
func Texts(ctx context.Context, before, after []byte) (*File, error) {
	f := &File{Old: before, New: after}
	return f, f.compare(ctx)
}

// content returns the text of an entry for comparison. Directories and missing entries
// have no lines; a link has one.
func content(ctx context.Context, blobs blob.Store, e *workspace.Entry) ([]byte, error) {
	switch {
	case !isFile(e):
		return nil, nil
	case e.Kind == workspace.Symlink:
		target, err := workspace.ReadLink(ctx, blobs, *e)
		return []byte(target + "\n"), err
	}
	return workspace.ReadFile(ctx, blobs, *e)
}

// shown is how many equal lines are shown around a change.
const shown = 3

func (f *File) compare(ctx context.Context) error {
	edits, coarse, err := changes(ctx, f.Old, f.New)
	if err != nil {
		return err
	}
	f.Coarse = coarse
	old, now := Lines(f.Old), Lines(f.New)
	for len(edits) > 0 {
		n := 1 // edits of one hunk: the lines around them meet
		for n < len(edits) && edits[n].From-(edits[n-1].From+edits[n-1].FromLen) <= 2*shown {
			n++
		}
		f.Hunks = append(f.Hunks, f.hunk(edits[:n], old, now))
		edits = edits[n:]
	}
	return nil
}

// hunk makes a hunk of edits that are close to each other, and counts their lines.
func (f *File) hunk(edits []Edit, old, now [][]byte) Hunk {
	lead := min(shown, edits[0].From, edits[0].To)
	from, to := edits[0].From-lead, edits[0].To-lead
	h := Hunk{From: from, To: to}
	same := func(end int) { // lines up to the end in the old version
		for ; from < end; from, to = from+1, to+1 {
			h.Lines = append(h.Lines, Line{Op: Same, From: from, To: to, Text: string(old[from])})
		}
	}
	for _, e := range edits {
		same(e.From)
		for end := from + e.FromLen; from < end; from++ {
			h.Lines = append(h.Lines, Line{Op: Delete, From: from, To: -1, Text: string(old[from])})
		}
		for end := to + e.ToLen; to < end; to++ {
			h.Lines = append(h.Lines, Line{Op: Insert, From: -1, To: to, Text: string(now[to])})
		}
		f.Removed += e.FromLen
		f.Added += e.ToLen
	}
	same(min(from+shown, len(old)))
	h.FromLen, h.ToLen = from-h.From, to-h.To
	return h
}

// Kind returns the kind of the newer version, or of the older one if the file is gone.
func (f *File) Kind() workspace.Kind {
	if f.After != nil {
		return f.After.Kind
	}
	return f.Before.Kind
}

// Became reports whether something of another kind is there now, such as a link in place
// of a file.
func (f *File) Became() bool {
	return f.Before != nil && f.After != nil && f.Before.Kind != f.After.Kind
}

// ModeChange returns the change of the mode, such as "0644 to 0755", or "". A path that
// became something else has none.
func (f *File) ModeChange() string {
	if f.Before == nil || f.After == nil || f.Before.Mode == f.After.Mode || f.Became() {
		return ""
	}
	return fmt.Sprintf("%04o to %04o", f.Before.Mode, f.After.Mode)
}

// Unified returns the hunks in the format of patch(1), without the names of the file.
func (f *File) Unified() string {
	var text strings.Builder
	for _, h := range f.Hunks {
		fmt.Fprintf(&text, "@@ -%s +%s @@\n", lineRange(h.From, h.FromLen), lineRange(h.To, h.ToLen))
		for _, line := range h.Lines {
			text.WriteString(string(line.Op) + line.Text)
			if !strings.HasSuffix(line.Text, "\n") {
				text.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	return text.String()
}

func lineRange(from, n int) string {
	if n == 1 {
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", FirstLine(from, n), n)
}

// FirstLine numbers lines as unified diffs do: from 1, with an empty range numbered
// by the line before it.
func FirstLine(from, n int) int {
	if n == 0 {
		return from
	}
	return from + 1
}
