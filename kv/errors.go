package kv

import (
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// Limits on rows. They keep indexes small and hostile input cheap.
const (
	// MaxKey is the longest key in bytes.
	MaxKey = 2048
	// MaxValue is the largest value in bytes; larger things are blobs. With its key
	// and a seal it fits into a 4 MiB message.
	MaxValue = 4<<20 - 64<<10
)

var (
	// ErrNotFound says that there is no row with that key.
	ErrNotFound = fault.Named(fault.NotFound, "row-not-found", "row not found")
	// ErrConflict says that an expectation of a batch did not hold. Nothing was
	// changed.
	ErrConflict = fault.Named(fault.Stale, "row-conflict", "conflict")
	// ErrInvalidKey says that a key is empty, too long, or holds a NUL byte.
	ErrInvalidKey = fault.Named(fault.Invalid, "invalid-key", "invalid key")
	// ErrTooLarge says that a value exceeds MaxValue.
	ErrTooLarge = fault.Named(fault.Exhausted, "row-too-large", "row too large")
	// ErrCorrupt says that a stored row is not what was written.
	ErrCorrupt = fault.Named(fault.Damaged, "corrupt-row", "row is corrupt")
	// ErrNewerFormat says that a row was written by a newer release.
	ErrNewerFormat = fault.Named(fault.NewerFormat, "newer-format", "row has a newer format")
	// ErrBusy means that another process held the store for longer than the timeout.
	// Nothing was changed.
	ErrBusy = fault.Named(fault.Busy, "busy", "store is busy")
	// ErrUncertain means that a commit failed and may or may not have happened. The store
	// takes no writes until it is reopened. Only the state after that is final; the state
	// before may differ.
	ErrUncertain = fault.Named(fault.Uncertain, "uncertain", "the outcome of the commit is unknown until the store is opened again")
	// ErrInvalidBatch says that a batch contradicts itself.
	ErrInvalidBatch = fault.Named(fault.Invalid, "invalid-batch", "invalid batch")
)

// NotFound returns an error for key that wraps ErrNotFound.
func NotFound(key string) error { return fmt.Errorf("%w: %q", ErrNotFound, key) }

// ConflictError names the expectation that failed. It wraps ErrConflict.
type ConflictError struct {
	Key       string
	Want, Got uint64 // versions; 0 is absent
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict: row %q is at version %d, expected %d", e.Key, e.Got, e.Want)
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// MissingBlobsError lists the blobs that a batch refers to and that are not stored.
// It wraps blob.ErrNotFound. Put them (again) and retry the commit.
type MissingBlobsError struct{ IDs []blob.ID }

func (e *MissingBlobsError) Error() string {
	names := make([]string, 0, 4)
	for i, id := range e.IDs {
		if i == 3 {
			names = append(names, "…")
			break
		}
		names = append(names, id.String())
	}
	return fmt.Sprintf("commit refers to %d missing blobs: %s", len(e.IDs), strings.Join(names, ", "))
}

// Unwrap returns blob.ErrNotFound.
func (e *MissingBlobsError) Unwrap() error { return blob.ErrNotFound }

// CheckKey returns ErrInvalidKey for a key that no store takes.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrInvalidKey)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %d bytes; the limit is %d", ErrInvalidKey, len(key), MaxKey)
	case strings.IndexByte(key, 0) >= 0:
		return fmt.Errorf("%w: %q holds a NUL byte", ErrInvalidKey, key)
	}
	return nil
}

// Check returns the error for a batch that no store can commit, whatever its rows.
// Drivers call it first.
func (b *Batch) Check() error {
	for _, e := range b.Expect {
		if err := CheckKey(e.Key); err != nil {
			return err
		}
	}
	for _, k := range b.Delete {
		if err := CheckKey(k); err != nil {
			return err
		}
	}
	seen := make(map[string]struct{}, len(b.Set))
	for _, s := range b.Set {
		if err := CheckKey(s.Key); err != nil {
			return err
		}
		if len(s.Value) > MaxValue {
			return fmt.Errorf("%w: %q has %d bytes; the limit is %d", ErrTooLarge, s.Key, len(s.Value), MaxValue)
		}
		if _, twice := seen[s.Key]; twice {
			return fmt.Errorf("%w: %q is set twice", ErrInvalidBatch, s.Key)
		}
		seen[s.Key] = struct{}{}
	}
	return nil
}
