package workspace

import (
	"encoding/json"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrBadNode says that a blob is not a directory node or a chunk list, or
	// breaks a rule of the format.
	ErrBadNode = fault.Named(fault.Damaged, "bad-tree", "malformed tree node")
	// ErrBadPath says that a path may not appear in a tree; see CheckPath.
	ErrBadPath = fault.Named(fault.Invalid, "bad-path", "path not allowed")
	// ErrBadIndex says that an index is damaged or of another version. It is only a
	// cache: go on without it.
	ErrBadIndex = fault.New(fault.Damaged, "unusable index")
	// ErrRootRefused says that a directory must not be a workspace; see RootAllowed.
	ErrRootRefused = fault.Named(fault.Invalid, "root-refused", "directory refused as workspace root")
)

// Kind is the kind of an entry.
type Kind uint8

// The kinds of entries. The values are part of the node format.
const (
	File    Kind = 1
	Dir     Kind = 2
	Symlink Kind = 3
)

// String returns "file", "dir" or "symlink".
func (k Kind) String() string {
	switch k {
	case File:
		return "file"
	case Dir:
		return "dir"
	case Symlink:
		return "symlink"
	}
	return "unknown"
}

// Entry is one name in a directory.
type Entry struct {
	// Name is the raw name, one path component, in no particular encoding.
	Name string
	Kind Kind
	// Mode holds the permission bits (0o7777) of a file or directory. It is 0 for a
	// symbolic link, whose mode is meaningless.
	Mode uint32
	// Size is the length of a file or of a link's target, 0 for a directory.
	Size int64
	// ID is the content of a file, the node of a directory, the target of a link.
	ID blob.ID
	// Chunked means that ID is a list of chunks instead of the content itself.
	Chunked bool
}

// Same reports whether two entries of the same path have the same content and
// mode.
func (e Entry) Same(o Entry) bool {
	return e.Kind == o.Kind && e.Mode == o.Mode && e.Size == o.Size && e.ID == o.ID && e.Chunked == o.Chunked
}

// Change is a path that differs between two trees. Before is nil for an added path,
// After for a removed one. A directory in both trees is listed only if its mode
// differs. A path that became a directory is listed, too.
type Change struct {
	Path          string
	Before, After *Entry
}

// Op returns "add", "remove" or "modify".
func (c Change) Op() string {
	switch {
	case c.Before == nil:
		return "add"
	case c.After == nil:
		return "remove"
	}
	return "modify"
}

// Reason is why a path was not captured.
type Reason string

// The reasons. They are stable and used in JSON.
const (
	// ReasonIgnored: excluded by an ignore file. For an ignored directory only the
	// directory itself is listed.
	ReasonIgnored Reason = "ignored"
	// ReasonRepository: the data of a git repository below the root. Its working files
	// are captured like others.
	ReasonRepository Reason = "git repository"
	// ReasonTooLarge: larger than Options.MaxFile.
	ReasonTooLarge Reason = "too large"
	// ReasonSpecial: a FIFO, socket or device.
	ReasonSpecial Reason = "special file"
	// ReasonPermission: the file or directory may not be read.
	ReasonPermission Reason = "permission denied"
	// ReasonChanging: it changed during every attempt to read it.
	ReasonChanging Reason = "changing"
	// ReasonName: a name that no tree may hold, such as git~1; see CheckPath.
	ReasonName Reason = "name not allowed"
	// ReasonPathLength: the path is longer than MaxPath or holds a name longer
	// than MaxName.
	ReasonPathLength Reason = "path too long"
	// ReasonIO: the disk or the file system failed; Err has the cause.
	ReasonIO Reason = "read error"
	// ReasonExcluded: matches Options.Exclude.
	ReasonExcluded Reason = "excluded"
	// ReasonSecret: matches Options.Secrets, and no ignore file excludes it.
	ReasonSecret Reason = "secret"
	// ReasonPurged: it was captured before and has been removed from the store. No scan
	// returns it.
	ReasonPurged Reason = "purged"
)

// ByRule reports whether the path is left out by the user's rules or settings, and could
// otherwise be captured.
func (r Reason) ByRule() bool {
	return r == ReasonIgnored || r == ReasonExcluded || r == ReasonSecret
}

// Skipped is a path that a scan saw and did not capture. A restore must leave such
// paths alone: their absence from the tree means nothing.
type Skipped struct {
	Path   string `json:"path"`
	Reason Reason `json:"reason"`
	// Dir means that the path is a directory, so nothing below it was captured either
	// (except the files in Options.Touched).
	Dir bool `json:"dir,omitempty"`
	// Size is the size of a file that is too large.
	Size int64 `json:"size,omitempty"`
	// Err is the cause, if the reason alone is not enough.
	Err error `json:"-"`
}

// MarshalJSON adds the bytes of a path that is not text.
func (s Skipped) MarshalJSON() ([]byte, error) {
	type plain Skipped
	return json.Marshal(struct {
		plain
		PathBytes []byte `json:"path_bytes,omitempty"`
	}{plain(s), PathBytes(s.Path)})
}
