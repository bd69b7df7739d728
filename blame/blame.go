package blame

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/transcript"
	"github.com/stet-dev/stet/workspace"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNoFile says that a checkpoint has no file with that name.
	ErrNoFile = checkpoint.ErrNoPath
	// ErrNoLines says that a path has no lines: it is a directory, a link, a binary file
	// or a file that is too large to compare.
	ErrNoLines = fault.Named(fault.Invalid, "no-lines", "no lines to look at")
)

// Reader finds origins. It is safe for concurrent use.
type Reader struct {
	blobs         blob.Store
	checkpoints   *checkpoint.Service
	conversations *conversation.Store
	turns         *timeline.Reader
	transcripts   *transcript.Reader
	ahead         int // versions that are read together
	many          int // versions that are worth remembering
}

// New returns a reader over two services and their store of blobs.
func New(blobs blob.Store, checkpoints *checkpoint.Service, conversations *conversation.Store) *Reader {
	return &Reader{
		blobs: blobs, checkpoints: checkpoints, conversations: conversations,
		turns: timeline.New(checkpoints, conversations), transcripts: transcript.New(conversations, blobs),
		ahead: aheadTexts, many: manyVersions,
	}
}

// File is a version of a file with the origins of its lines.
type File struct {
	Path string
	// At is the checkpoint that has the version.
	At    *checkpoint.Record
	Lines []Line
	// Origins are those of the lines, oldest first.
	Origins []Origin
	// Forgotten is the number of checkpoints before the oldest one with the file that
	// are no longer kept. Lines of that version are older.
	Forgotten uint64
	// Damaged are checkpoints that cannot be read.
	Damaged []*checkpoint.UnreadableError
	// Versions is how many versions of the file were found.
	Versions int
}

// Line is a line of a file.
type Line struct {
	// Number counts from 1.
	Number int
	// Text has its newline, if there is one.
	Text string
	// Origin is the index of its origin in File.Origins, and Then its line number there,
	// from 1.
	Origin, Then int
}

// Kind is what is known about an origin.
type Kind string

// The kinds.
const (
	// Agent: a conversation wrote it.
	Agent Kind = "agent"
	// You: the user wrote it, between turns or before the first one.
	You Kind = "you"
	// Several: one of several conversations that were at work wrote it.
	Several Kind = "several"
	// Unknown: Why says why it is unknown.
	Unknown Kind = "unknown"
)

// Why is the reason why an origin is not known.
type Why string

// The reasons.
const (
	// WhyFirst: it existed at the first checkpoint, which was made after a turn.
	WhyFirst Why = "before-the-first-checkpoint"
	// WhyForgotten: it came with checkpoints that are no longer kept.
	WhyForgotten Why = "forgotten"
	// WhyUnseen: it was written while the file was not captured.
	WhyUnseen Why = "not-captured"
	// WhyInterrupted: it was written after a turn whose end nobody saw, by the turn or by the
	// user.
	WhyInterrupted Why = "interrupted-turn"
	// WhyMerged: a rewind that merged lines made it.
	WhyMerged Why = "merged"
)

// Origin is a change that lines began with.
type Origin struct {
	Kind Kind
	// Why is set for an unknown origin.
	Why Why
	// Writer has the conversation, the turn and the message.
	Writer checkpoint.Writer
	// At is the checkpoint that first saw the change; it has no id for the present.
	At *checkpoint.Record
	// Path was the name of the file then.
	Path string
	// First means that it existed at the oldest checkpoint that is kept.
	First bool
}

// File returns the lines of a file with their origins, at a checkpoint or, with the
// record of checkpoint.Workspace.Unsaved, at the present.
func (r *Reader) File(ctx context.Context, at *checkpoint.Record, path string) (*File, error) {
	if at.Kind == checkpoint.Import {
		if strings.HasPrefix(at.Source, checkpoint.BranchSource) {
			return nil, fmt.Errorf("%w: %s is of a branch of 'stet try', whose lines are compared with the checkpoint that it began with", ErrNoLines, at.Name())
		}
		return nil, fmt.Errorf("%w: %s was imported and knows only some files, and nobody's changes", ErrNoLines, at.Name())
	}
	text, err := r.text(ctx, at, path)
	if err != nil {
		return nil, err
	}
	versions, err := r.checkpoints.Versions(ctx, path, at, r.renamed)
	if err != nil {
		return nil, err
	}
	places, err := r.places(ctx, at.Workspace, path, versions.List)
	if err != nil {
		return nil, fmt.Errorf("blame %q: %w", path, err)
	}
	f := &File{Path: path, At: at, Forgotten: versions.Forgotten, Damaged: versions.Damaged, Versions: len(versions.List)}
	f.fill(text, places, versions.List)
	return f, nil
}

// fill joins the lines with their origins.
func (f *File) fill(text []byte, places []Place, versions []checkpoint.Version) {
	used := make([]int, len(versions)) // index of the origin, from 1
	for _, p := range places {
		used[p.Version] = 1
	}
	for i := range used {
		if used[i] > 0 {
			f.Origins = append(f.Origins, originOf(&versions[i]))
			used[i] = len(f.Origins)
		}
	}
	for i, line := range linediff.Lines(text) {
		p := places[i]
		f.Lines = append(f.Lines, Line{Number: i + 1, Text: string(line), Origin: used[p.Version] - 1, Then: int(p.Line) + 1})
	}
}

// originOf returns what is known about a version that lines began with.
func originOf(v *checkpoint.Version) Origin {
	o := Origin{Writer: v.Writer, At: v.At, Path: v.Path, Kind: Unknown}
	if v.First {
		o.First = true
		switch by := v.At.Writer(); {
		case v.At.Parent != "":
			o.Why = WhyForgotten
		case by.Class == checkpoint.ByUser || by.Class == checkpoint.ByHand:
			o.Kind, o.Writer = You, by
		default:
			o.Why = WhyFirst
		}
		return o
	}
	switch v.Writer.Class {
	case checkpoint.ByUser, checkpoint.ByHand:
		o.Kind = You
	case checkpoint.ByConversation:
		o.Kind = Agent
	case checkpoint.BySeveral:
		o.Kind = Several
	case checkpoint.ByUserOrLost:
		o.Why = WhyInterrupted
	case checkpoint.ByUnseen:
		o.Why = WhyUnseen
	default:
		o.Why = WhyForgotten
	}
	if v.Rewound {
		o.Kind, o.Why = Unknown, WhyMerged
	}
	return o
}

// text reads the file, or says why it has no lines.
func (r *Reader) text(ctx context.Context, at *checkpoint.Record, path string) ([]byte, error) {
	if path == "." { // the workspace itself, which no tree has under a name
		return nil, fmt.Errorf("%w: %q is a directory", ErrNoLines, path)
	}
	if err := workspace.CheckPath(path); err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrNoFile, path, err)
	}
	e, err := workspace.Lookup(ctx, r.blobs, at.Tree, path)
	if errors.Is(err, errNotExist) {
		return nil, r.missing(ctx, at, path)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case e.Kind == workspace.Dir:
		return nil, fmt.Errorf("%w: %q is a directory", ErrNoLines, path)
	case e.Kind == workspace.Symlink:
		return nil, fmt.Errorf("%w: %q is a symbolic link", ErrNoLines, path)
	case e.Size > linediff.MaxFile:
		return nil, fmt.Errorf("%w: %q is larger than %d MiB", ErrNoLines, path, linediff.MaxFile>>20)
	}
	text, err := workspace.ReadFile(ctx, r.blobs, e)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	if linediff.Binary(text) {
		return nil, fmt.Errorf("%w: %q is a binary file", ErrNoLines, path)
	}
	return text, nil
}

// missing returns an error that says why a checkpoint does not have a file.
func (r *Reader) missing(ctx context.Context, at *checkpoint.Record, path string) error {
	where := "the workspace"
	if at.ID != "" {
		where = at.Name()
	}
	skipped, err := r.checkpoints.NotCaptured(ctx, at)
	if err != nil {
		return err
	}
	for _, k := range skipped {
		if k.Path == path || k.Dir && strings.HasPrefix(path, k.Path+"/") {
			return fmt.Errorf("%w: %q is not in %s: it was not captured: %s", ErrNoFile, path, where, k.Reason)
		}
	}
	versions, err := r.checkpoints.Versions(ctx, path, at, nil)
	if err != nil {
		return err
	}
	if n := len(versions.List); n > 0 {
		when := "since the last checkpoint"
		if last := versions.List[n-1]; last.At.ID != "" {
			when = "at " + last.At.Name()
		}
		return fmt.Errorf("%w: %q is not in %s: it was removed %s", ErrNoFile, path, where, when)
	}
	return fmt.Errorf("%w: %q is not in %s, and no checkpoint before it has it", ErrNoFile, path, where)
}
