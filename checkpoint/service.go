package checkpoint

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Conversations is what a rewind needs from the store of conversations. Of returns
// the implementation over package conversation.
type Conversations interface {
	// Current returns the current root of a conversation, or the zero id if it has
	// none.
	Current(ctx context.Context, conversation string) (blob.ID, error)
	// Had reports whether root is a state in the history of a conversation, or one that it
	// shares with its origin, so that Rewind can go there. It is false if there is no such
	// conversation.
	Had(ctx context.Context, conversation string, root blob.ID) (bool, error)
	// Origin returns the conversation that one was forked from, zero for none.
	Origin(ctx context.Context, conversation string) (Origin, error)
	// Continued returns which of several states the current one of a conversation continues,
	// or is: the latest of them. It is zero if it continues none.
	Continued(ctx context.Context, conversation string, roots ...blob.ID) (blob.ID, error)
	// Rewind moves the conversation from its current root to an earlier one, in one
	// commit to which extend adds; files and conversation move together or not at all.
	// It appends to the history. If the current root is another than from, it fails
	// with ErrStalePlan; a from of zero is any.
	Rewind(ctx context.Context, conversation string, from, to blob.ID, author string, extend func(*kv.Batch) error) error
	// Fork creates a conversation that begins with root, a state of the given one,
	// and returns its id, in one commit to which extend adds.
	Fork(ctx context.Context, conversation string, root blob.ID, author string, extend func(fork string, b *kv.Batch) error) (string, error)
}

// Options configure a Service. The zero value, and nil, work.
type Options struct {
	// IndexDir is a directory for local files: the stat index and the lock of each
	// workspace. Without it every Open scans from nothing, and other processes are
	// not locked out.
	IndexDir string
	// StoreDir is the directory of the store, if it has one: a workspace may neither contain
	// it nor be inside it. IndexDir counts as a part of the store, too.
	StoreDir string
	// IndexSeal seals the stat indexes of an encrypted store; nil leaves them plain.
	IndexSeal workspace.Sealer
	// Conversations moves conversations along with files. Without it a rewind can
	// move files only.
	Conversations Conversations
	// Scan configures captures. Touched, Reveal, Force, Progress, Written, Reread, Share
	// and NoContents are ignored.
	Scan workspace.Options
	// RereadEvery is the time within which checkpoints read every file again, a share
	// at a time, regardless of stamps: 7 days if 0, never if negative. Large trees
	// take longer. It needs IndexDir. Scan.Full reads all at once.
	RereadEvery time.Duration
	// Ignored configures the handling of ignored files at the beginning of turns.
	Ignored IgnoredFiles
	// Force accepts a home directory or the root of the file system as a workspace.
	Force bool
	// ThresholdMS is the minimum time in milliseconds between two automatic
	// checkpoints that are on no side of a turn (checkpoint_threshold_ms).
	ThresholdMS int64
	// DisableRead refuses plans and rewinds (enable_checkpoint_read = false).
	DisableRead bool
	// DisableWrite disables captures, as results say, and rewinds, because they save
	// the current state first (enable_checkpoint_write = false).
	DisableWrite bool
	// OneByOne makes a rewind handle files one after the other instead of a few side by
	// side, for slow or fragile file systems (fast_checkpoints = false). Both are
	// all-or-nothing.
	OneByOne bool
	// Timeout is how long a batch of file operations of a rewind may take; the
	// default is 150 ms an operation, at least 2 s and at most 10 s.
	Timeout func(operations int) time.Duration
	// LockWait is how long to wait for the lock of the workspace; the default is 30
	// s.
	LockWait time.Duration
	// Command names this process to others that find a workspace busy; the default is
	// the name of the program.
	Command string
	// Now replaces the clock.
	Now func() time.Time

	// hook is called before every call that changes the workspace; an error replaces
	// the call. For fault injection in tests.
	hook func(call, path string) error
	// life reports whether a process is running. Tests replace it.
	life func(Process) Life
	// manyTrees is how many trees a look reads before it remembers them. Tests lower it.
	manyTrees int
}

func (o *Options) timeout(operations int) time.Duration {
	if o.Timeout != nil {
		return o.Timeout(operations)
	}
	ms := min(10_000, max(2_000, operations*150))
	return time.Duration(ms) * time.Millisecond
}

// Service keeps the checkpoints of any number of workspaces in one store. It is
// safe for concurrent use.
type Service struct {
	blobs blob.Store
	rows  kv.Store
	opts  Options

	// of is the service whose locks this read-only one uses; nil otherwise.
	of *Service

	mu    sync.Mutex
	locks map[string]chan struct{} // guarded by mu; by workspace id, holds a token while free
}

// Looking returns the same service over other blobs, for callers that read a workspace and
// must store nothing: blobs overlays the store and takes temporary content. Only Present,
// Outline, Plan and Versions are useful: a commit would not find the blobs.
func (s *Service) Looking(blobs blob.Store) *Service {
	return &Service{blobs: blobs, rows: s.rows, opts: s.opts, of: s}
}

// New returns the service over a store of blobs and rows.
func New(blobs blob.Store, rows kv.Store, opts *Options) *Service {
	s := &Service{blobs: blobs, rows: rows, locks: map[string]chan struct{}{}}
	if opts != nil {
		s.opts = *opts
		s.opts.Scan.NoContents, s.opts.Scan.Reveal = false, false
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.life == nil {
		s.opts.life = Process.Life
	}
	if s.opts.manyTrees == 0 {
		s.opts.manyTrees = manyTrees
	}
	if s.opts.LockWait == 0 {
		s.opts.LockWait = 30 * time.Second
	}
	return s
}

// file returns the path of a file of a workspace in IndexDir.
func (s *Service) file(workspace, ext string) string {
	return filepath.Join(s.opts.IndexDir, workspace+ext)
}
