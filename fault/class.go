package fault

import "slices"

// Class says what a failure means to a caller. The constants are ordered: where an
// error holds several classes, the greatest one counts.
type Class uint8

const (
	// Unknown is the class of an error that has none, and of nil. Nothing is known
	// about another attempt.
	Unknown Class = iota
	// NotFound: the named thing does not exist. Another attempt does not help.
	NotFound
	// Invalid: the request is wrong regardless of what is stored. Another attempt does
	// not help.
	Invalid
	// Exists: the name is taken. Another attempt helps with another name.
	Exists
	// Stale: someone else made a change first; nothing was changed. Read again, then
	// try again.
	Stale
	// Conflict: the current state does not allow it; nothing was changed. Another attempt
	// helps after a choice or another action.
	Conflict
	// Unsupported: this store, system or release cannot do it. Another attempt does
	// not help.
	Unsupported
	// Busy: the thing is in use at the moment; nothing was changed. Another attempt
	// helps.
	Busy
	// Closed: the handle was closed. Open it again, then try again.
	Closed
	// Canceled: the caller's context ended, by a cancellation or a deadline.
	Canceled
	// Unreachable: a server, database or bucket does not answer; nothing was changed.
	// Another attempt helps when the service is back.
	Unreachable
	// Denied: credentials or permissions do not allow it. Another attempt helps after
	// they have changed.
	Denied
	// Exhausted: a limit of space, size, count or rate is reached. Another attempt helps
	// with less, later, or after making room.
	Exhausted
	// ReadOnly: reading works and writing does not, by choice or after a failure. Another
	// attempt helps after the store has been opened again for writing.
	ReadOnly
	// WrongKey: the key is missing or belongs to something else. Another attempt helps
	// with the right key.
	WrongKey
	// NewerFormat: a later release wrote it. Another attempt helps with that release.
	NewerFormat
	// RolledBack: the operation failed halfway and was undone; everything is as it was.
	// Another attempt helps once the cause is removed.
	RolledBack
	// Uncertain: the change may or may not have happened. Look before another attempt.
	Uncertain
	// Damaged: stored data is not what was written. Another attempt does not help;
	// the data needs a repair or a backup.
	Damaged
)

// names are stable: they cross the wire.
var names = [...]string{
	Unknown: "unknown", NotFound: "not-found", Invalid: "invalid", Exists: "exists", Stale: "stale",
	Conflict: "conflict", Unsupported: "unsupported", Busy: "busy", Closed: "closed", Canceled: "canceled",
	Unreachable: "unreachable", Denied: "denied", Exhausted: "exhausted", ReadOnly: "read-only",
	WrongKey: "wrong-key", NewerFormat: "newer-format", RolledBack: "rolled-back", Uncertain: "uncertain",
	Damaged: "damaged",
}

// String returns the stable name of a class, such as "not-found".
func (c Class) String() string {
	if int(c) >= len(names) {
		return names[Unknown]
	}
	return names[c]
}

// Parse returns the class of a name, or Unknown.
func Parse(name string) Class {
	return Class(max(slices.Index(names[:], name), 0))
}

// Classes returns every class except Unknown, from the least to the most serious. Tests
// use it to check that a table has a row for each class.
func Classes() []Class {
	all := make([]Class, 0, len(names)-1)
	for c := range names[1:] {
		all = append(all, Class(c+1))
	}
	return all
}
