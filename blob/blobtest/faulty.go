package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
)

// ErrInjected is the error of faults that name no other.
var ErrInjected = errors.New("injected fault")

// Op names a method of a store.
type Op string

// The methods that Faulty sees.
const (
	OpGet     Op = "get"
	OpPut     Op = "put"
	OpHas     Op = "has"
	OpFlush   Op = "flush"
	OpOpen    Op = "open"
	OpPutFrom Op = "putfrom"
)

// Call describes to a rule the call that is about to run.
type Call struct {
	Op    Op
	Nth   int // of all calls since the store was made, from 1
	NthOp int // of the calls of this Op, from 1
	IDs   []blob.ID
}

// Fault describes how a call fails. Several faults may be combined.
type Fault struct {
	// Err is returned instead of calling the inner store.
	Err error
	// Late returns Err after the inner store has done its work, like a lost reply.
	Late bool
	// Delay comes first; it ends early if the context ends.
	Delay time.Duration
	// DropWrite acknowledges a Put or PutFrom without storing anything.
	DropWrite bool
	// Corrupt flips a bit in the bytes that Get or Open returns.
	Corrupt bool
	// Truncate cuts that many bytes off the bytes that Get or Open returns.
	Truncate int
}

// Faulty is a store that misbehaves on demand and counts its calls. Without
// rules it passes everything to the inner store.
type Faulty struct {
	inner blob.Store

	mu    sync.Mutex // guards what follows
	rules []func(Call) *Fault
	total int
	calls map[Op]int
}

var _ blob.Streamer = (*Faulty)(nil)

// NewFaulty returns a Faulty around inner.
func NewFaulty(inner blob.Store) *Faulty {
	return &Faulty{inner: inner, calls: make(map[Op]int)}
}

// On adds a rule. The first rule that returns a fault decides. Rules run one at
// a time and must not call the store.
func (f *Faulty) On(rule func(Call) *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, rule)
}

// FailNth makes the n-th call from now on fail with err, or with ErrInjected.
func (f *Faulty) FailNth(n int, err error) {
	seen := 0
	f.On(func(Call) *Fault {
		if seen++; seen == n {
			return &Fault{Err: orInjected(err)}
		}
		return nil
	})
}

// FailNext makes the next n calls of op fail with err, or with ErrInjected.
func (f *Faulty) FailNext(op Op, n int, err error) {
	f.On(func(c Call) *Fault {
		if c.Op != op || n == 0 {
			return nil
		}
		n--
		return &Fault{Err: orInjected(err)}
	})
}

// FailWhen makes every call fail for which when is true, with err or with
// ErrInjected.
func (f *Faulty) FailWhen(when func(Call) bool, err error) {
	f.On(func(c Call) *Fault {
		if when(c) {
			return &Fault{Err: orInjected(err)}
		}
		return nil
	})
}

func orInjected(err error) error {
	if err == nil {
		return ErrInjected
	}
	return err
}

// Heal removes all rules.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Calls returns how often the methods were called, all of them if none is named.
func (f *Faulty) Calls(ops ...Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(ops) == 0 {
		return f.total
	}
	n := 0
	for _, op := range ops {
		n += f.calls[op]
	}
	return n
}

// fault counts a call and decides about it.
func (f *Faulty) fault(op Op, ids ...blob.ID) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	f.calls[op]++
	call := Call{Op: op, Nth: f.total, NthOp: f.calls[op], IDs: ids}
	for _, rule := range f.rules {
		if fault := rule(call); fault != nil {
			return *fault
		}
	}
	return Fault{}
}

// run does one call under its fault.
func (f *Faulty) run(ctx context.Context, fault Fault, call func() error) error {
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fault.Err != nil && !fault.Late {
		return fault.Err
	}
	if err := call(); err != nil {
		return err
	}
	return fault.Err
}

// Get implements blob.Store.
func (f *Faulty) Get(ctx context.Context, id blob.ID) (data []byte, err error) {
	fault := f.fault(OpGet, id)
	err = f.run(ctx, fault, func() error {
		data, err = f.inner.Get(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return damage(data, fault), nil
}

// damage changes the bytes read as the fault says.
func damage(data []byte, fault Fault) []byte {
	data = data[:len(data)-min(fault.Truncate, len(data))]
	if fault.Corrupt && len(data) > 0 {
		data[len(data)/2] ^= 1
	}
	return data
}

// Put implements blob.Store.
func (f *Faulty) Put(ctx context.Context, blobs ...blob.Blob) error {
	ids := make([]blob.ID, len(blobs))
	for i := range blobs {
		ids[i] = blobs[i].ID
	}
	fault := f.fault(OpPut, ids...)
	return f.run(ctx, fault, func() error {
		if fault.DropWrite {
			return ctx.Err()
		}
		return f.inner.Put(ctx, blobs...)
	})
}

// Has implements blob.Store.
func (f *Faulty) Has(ctx context.Context, ids ...blob.ID) (has []bool, err error) {
	err = f.run(ctx, f.fault(OpHas, ids...), func() error {
		has, err = f.inner.Has(ctx, ids...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return has, nil
}

// Flush implements blob.Store.
func (f *Faulty) Flush(ctx context.Context) error {
	return f.run(ctx, f.fault(OpFlush), func() error { return f.inner.Flush(ctx) })
}

// Open implements blob.Streamer.
func (f *Faulty) Open(ctx context.Context, id blob.ID) (r io.ReadCloser, err error) {
	fault := f.fault(OpOpen, id)
	err = f.run(ctx, fault, func() error {
		r, err = blob.Open(ctx, f.inner, id)
		return err
	})
	switch {
	case err != nil && r != nil: // the answer was lost after the reader was open
		return nil, errors.Join(err, r.Close())
	case err != nil:
		return nil, err
	case !fault.Corrupt && fault.Truncate == 0:
		return r, nil
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(damage(data, fault))), nil
}

// PutFrom implements blob.Streamer.
func (f *Faulty) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	fault := f.fault(OpPutFrom, id)
	return f.run(ctx, fault, func() error {
		if fault.DropWrite {
			_, err := io.Copy(io.Discard, r)
			return errors.Join(err, ctx.Err())
		}
		return blob.PutFrom(ctx, f.inner, id, r, size)
	})
}
