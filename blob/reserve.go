package blob

import "context"

// largeContent is the size from which a store calls reserve before it takes memory.
const largeContent = 1 << 20

type reserveKey struct{}

// WithReserve returns a context under which stores call reserve before they take
// memory for a content of more than 1 MiB, with its size. An error of reserve ends
// the call. A server uses it to limit the memory of all its clients' calls together,
// because any client may name any blob.
func WithReserve(ctx context.Context, reserve func(ctx context.Context, size int64) error) context.Context {
	return context.WithValue(ctx, reserveKey{}, reserve)
}

// Reserve is called by drivers and layers before they take memory for a content.
func Reserve(ctx context.Context, size int64) error {
	if size <= largeContent {
		return nil
	}
	if reserve, ok := ctx.Value(reserveKey{}).(func(context.Context, int64) error); ok {
		return reserve(ctx, size)
	}
	return nil
}
