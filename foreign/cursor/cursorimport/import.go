package cursorimport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/kv"
)

// Target is the destination of Import: the blob and row stores of a stet store, with
// all their layers.
type Target struct {
	Blobs blob.Store
	Rows  kv.Store
}

// Options configure Import. The zero value, and nil, import everything.
type Options struct {
	// Conversations, if not nil, selects conversations and cloud agents.
	Conversations func(cursor.Header) bool
	// Again imports removed conversations again, and with Purged also those of which
	// content was purged before they were removed.
	Again, Purged bool
	// DryRun reads and counts but writes nothing.
	DryRun bool
	// Progress, if not nil, is called before each conversation and from time to time
	// while its blobs are copied.
	Progress func(Progress)
}

// Progress is the progress of an import.
type Progress struct {
	// Done counts the processed conversations out of Total, which is 0 if counting
	// would be expensive.
	Done, Total int
	// Current is the conversation being read.
	Current string
	Blobs   int64
}

// Result counts what an import added.
type Result struct {
	// Conversations counts new and grown conversations, Messages their messages.
	Conversations, Messages int
	// Blobs and Bytes count the blobs that the target did not have.
	Blobs, Bytes int64
	// Checkpoints counts JSON checkpoints, Agents cloud agents.
	Checkpoints, Agents int
	Skipped             []Skipped
}

// Skipped is something that was not imported, with the reason.
type Skipped struct {
	// Key is the conversation's id, or the row in the source.
	Key, Reason string
	// Damage means that something is broken or lost in the source. Otherwise there was
	// nothing to import.
	Damage bool
}

// Damaged counts what was skipped because of damage.
func (r *Result) Damaged() int {
	n := 0
	for _, s := range r.Skipped {
		if s.Damage {
			n++
		}
	}
	return n
}

// Labels of an imported conversation.
const (
	labelSource   = "source"        // sourceName
	labelPath     = "source_path"   // SHA-256 of the path of the store
	labelDigest   = "source_digest" // of all rows, once everything is imported
	labelParent   = "parent"        // the conversation that started this one
	labelSubagent = "subagent"
	labelArchived = "archived"
	labelMode     = "mode"
	labelKind     = "kind"
	sourceName    = "cursor"
)

// Import imports cloud agents, and conversations with their states, messages,
// checkpoints and original files, into a stet store. Ids are kept.
//
// Each conversation is finished before the next begins: after a crash, Import
// continues there. Data in the target is not written again, so a second Import adds
// nothing. A conversation that has grown since is continued; one that was continued
// in the target is left alone. Damaged data is skipped with a reason and never leaves
// an incomplete state. The error is set if the import ended early; the result counts
// what was imported until then.
func Import(ctx context.Context, src *cursor.Store, dst Target, opts *Options) (Result, error) {
	im := &importer{src: src, blobs: src.Blobs(), dst: dst, parents: map[string]string{}}
	if opts != nil {
		im.opts = *opts
	}
	// The clock shows the time of the imported data, so that conversations are listed
	// by their original time.
	im.store = conversation.New(dst.Blobs, dst.Rows, &conversation.Options{Now: func() time.Time { return im.now }})
	if abs, err := filepath.Abs(src.Path()); err == nil {
		im.path = blob.Sum([]byte(abs)).String()
	}
	if src.Kind() == cursor.KindEditor {
		for _, err := range src.Keys(ctx, cursor.ConversationPrefix) {
			if err != nil {
				break // found again, and reported, below
			}
			im.total++
		}
	}
	for _, step := range []func(context.Context) error{im.conversations, im.linkParents, im.agents} {
		if err := step(ctx); err != nil {
			return im.result, fmt.Errorf("import %s: %w", src.Path(), err)
		}
	}
	return im.result, nil
}

type importer struct {
	src   *cursor.Store
	blobs blob.Store // of src
	dst   Target
	opts  Options
	store *conversation.Store // over dst
	path  string
	now   time.Time

	result      Result
	done, total int
	current     string
	parents     map[string]string    // child to parent, as named by parents
	counted     map[blob.ID]struct{} // counted by a dry run, which cannot check the target
}

func (im *importer) skip(key string, damage bool, format string, args ...any) {
	im.result.Skipped = append(im.result.Skipped, Skipped{Key: key, Reason: fmt.Sprintf(format, args...), Damage: damage})
}

func (im *importer) progress(current string) {
	im.current = current
	if im.opts.Progress != nil {
		im.opts.Progress(Progress{Done: im.done, Total: im.total, Current: current, Blobs: im.result.Blobs})
	}
}

// targetError marks an error of the target, which ends an import.
type targetError struct{ error }

func (e targetError) Unwrap() error { return e.error }

// target marks an error as the target's.
func target(err error) error {
	if err == nil {
		return nil
	}
	return targetError{err}
}

// fatal reports whether an error affects more than the item that was read.
func fatal(ctx context.Context, err error) bool {
	var ours targetError
	if ctx.Err() == nil && (errors.Is(err, kv.ErrInvalidBatch) || kv.Damaged(err)) {
		return false // affects one conversation only
	}
	return ctx.Err() != nil || errors.As(err, &ours) ||
		errors.Is(err, cursor.ErrBusy) || errors.Is(err, cursor.ErrReplaced) || errors.Is(err, blob.ErrClosed)
}

// conversations imports all conversations.
func (im *importer) conversations(ctx context.Context) error {
	for h, err := range im.src.Conversations(ctx) {
		if err != nil {
			if fatal(ctx, err) {
				return err
			}
			im.skip(im.src.Path(), true, "the list of conversations ends early: %v", err)
			return nil
		}
		if im.opts.Conversations != nil && !im.opts.Conversations(h) {
			continue
		}
		im.progress(h.ID)
		if err := im.conversation(ctx, h); err != nil {
			if fatal(ctx, err) {
				return err
			}
			im.skip(h.ID, true, "%v", err)
		}
		im.done++
	}
	return nil
}

// linkParents labels children that only their parents name.
func (im *importer) linkParents(ctx context.Context) error {
	for _, child := range slices.Sorted(maps.Keys(im.parents)) {
		info, err := im.store.Get(ctx, child)
		if errors.Is(err, conversation.ErrNotFound) || errors.Is(err, conversation.ErrInvalid) {
			continue // not imported: already reported, or not in this store
		}
		if err != nil {
			return target(err)
		}
		if im.opts.DryRun || info.Labels[labelSource] != sourceName || info.Labels[labelParent] != "" {
			continue
		}
		if err := im.store.SetLabel(ctx, child, labelParent, im.parents[child]); err != nil {
			return target(err)
		}
	}
	return nil
}
