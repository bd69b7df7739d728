package server

import "context"

// NewMemory, and what it gives, are the memory of a server for its tests.
func NewMemory(total int64) *memory { return newMemory(total) }

// Call returns the allowance of a call.
func (m *memory) Call() *allowance { return &allowance{memory: m} }

func (a *allowance) Grow(ctx context.Context, n int64) error { return a.grow(ctx, n) }
func (a *allowance) Shrink(n int64)                          { a.shrink(n) }
func (a *allowance) End()                                    { a.end() }
