package cursor

import "time"

// Options configure a Store. The zero value, and nil, never write.
type Options struct {
	// Write allows Put of the blob view to add rows to the file. Without it the file
	// is never changed.
	Write bool
	// Rescue reads the readable part of a truncated file instead of rejecting it.
	// Damage is reported where it is found.
	Rescue bool
	// Key is the key string of blobs that are stored encrypted in a state.vscdb. The
	// store.db of an agent has its own.
	Key Secret
	// BusyTimeout is how long to wait for a lock of another process; 5 seconds if
	// zero.
	BusyTimeout time.Duration
	// MaxValue is the size limit of a value, in bytes; 256 MiB if zero. For a larger
	// value the error wraps blob.ErrTooLarge.
	MaxValue int
}

func (o Options) busyTimeout() time.Duration {
	if o.BusyTimeout > 0 {
		return o.BusyTimeout
	}
	return 5 * time.Second
}

// maxValue leaves room for the record around the value.
func (o Options) maxValue() int {
	if o.MaxValue > 0 {
		return o.MaxValue + 1024
	}
	return 256<<20 + 1024
}
