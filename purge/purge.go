package purge

import (
	"context"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/mirror"
	"github.com/stet-dev/stet/upkeep"
)

// Stores are what a Service works on. Blobs, Rows, Lister, Upkeep, Conversations and
// Checkpoints are required.
type Stores struct {
	// Blobs and Rows are the stores with every layer, archived conversations included.
	Blobs blob.Store
	Rows  kv.Store
	// Lister enumerates the stored blobs by the ids that Blobs uses.
	Lister blob.Lister
	// Repairer stores a blob again so that it no longer depends on another; nil if blobs
	// never depend on others.
	Repairer blob.Repairer
	Upkeep   *upkeep.Service

	Conversations *conversation.Store
	Checkpoints   *checkpoint.Service

	// Mirror holds copies at a remote; nil without one.
	Mirror *mirror.Store
	// Scrub overwrites what removed data left in the store's files, and Reindex brings
	// the search index up to date; nil if there is nothing to do.
	Scrub, Reindex func(context.Context) error
	// Dir is the directory whose files are searched at the end; "" for none.
	Dir string
	// Beside is a directory outside the store with files of text that may hold its content,
	// such as the spool of hooks; "" for none. It need not exist.
	Beside string
}

// Service purges one store.
type Service struct{ stores Stores }

// New returns a service for some stores.
func New(stores Stores) *Service { return &Service{stores: stores} }

// Target is what to remove.
type Target struct {
	// Secrets are strings of bytes. All content that holds one is removed; see CheckSecret.
	Secrets [][]byte
	// Workspace and Paths name files and directories of one workspace. Their contents,
	// in every checkpoint of it, are removed wherever the same content occurs, and
	// masked in conversations that hold all of it. A file that contains it only as a
	// part stays, and Plan.Partly names it.
	Workspace string
	Paths     []string
	// Progress, if set, is called from time to time with the number of blobs read.
	Progress func(read int)
}

// File is a path in checkpoints of a workspace.
type File struct {
	Workspace, Path string
	// Checkpoints are the ids, oldest first.
	Checkpoints []string
}

// Conversation is a conversation whose content holds the bytes.
type Conversation struct {
	ID string
	// Title is its title, empty if that holds the bytes itself.
	Title string
	// Places counts the blobs: messages, steps, results of tools.
	Places int
}

// Plan is what was found.
type Plan struct {
	// Files are removed from their checkpoints; Conversations are masked.
	Files         []File
	Conversations []Conversation
	// Rows are the keys of rows that hold the bytes, or names of contents that do.
	Rows []string
	// Beside are the files beside the store that hold the bytes.
	Beside []string
	// Sessions are the sessions of agents that imports and hooks would copy the bytes from
	// again. Remove cuts them off (see conversation.Cutoff): what they have so far is not
	// copied again. Their own records stay as they are.
	Sessions []Session
	// Contents is the number of stored blobs that hold the bytes, including those
	// without references.
	Contents int
	// Partly lists files that hold the content of a named path only as a part. They stay.
	Partly []File
	// Unread lists what could not be read and therefore not searched.
	Unread []error
	// Unfinished means that an earlier purge has not removed everything yet. Remove
	// finishes it.
	Unfinished bool

	target  Target
	find    *finder
	pending []blob.ID
}

// Empty reports whether there is nothing to remove.
func (p *Plan) Empty() bool {
	return len(p.Files) == 0 && len(p.Conversations) == 0 && len(p.Rows) == 0 && len(p.Beside) == 0 && p.Contents == 0 && !p.Unfinished &&
		!slices.ContainsFunc(p.Sessions, func(s Session) bool { return s.cut })
}

// Result is what Remove did.
type Result struct {
	// Checkpoints, Conversations and Rows count what was rewritten.
	Checkpoints, Conversations, Rows int
	// Files counts the files beside the store that were masked.
	Files int
	// Removed counts removed blobs; RemovedBytes is their stored size.
	Removed, RemovedBytes int64
	// Copies is the number of blobs whose copies were removed at the remote.
	Copies int
	// Scanned counts, for the proof, the blobs and rows that were read and the files whose
	// raw bytes were searched.
	Scanned Scanned
	// Remains names where the bytes are left, or may be.
	Remains []Remain
}

// Scanned counts what was searched.
type Scanned struct {
	Blobs, Rows, Files int
	Bytes              int64
}

// Remain is a place where bytes are left.
type Remain struct {
	// Where names the place: a file, a row, a blob, or a remote.
	Where string
	// Count is how often the bytes were found there; 0 if the place could not be searched.
	Count int
	// Why says why they are left, for people.
	Why string
}

// Left returns how often the bytes were found after the removal.
func (r *Result) Left() (n int) {
	for _, one := range r.Remains {
		n += one.Count
	}
	return n
}
