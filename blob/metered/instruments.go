package metered

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/meter"
)

type op int

const (
	opGet op = iota
	opSet
	opSetLocally
	opHas
	opOpen
	opFlush
	ops
)

func (o op) String() string {
	return [...]string{"get_blob", "set_blob", "set_blob_locally_only", "has_blob", "open_blob", "flush"}[o]
}

// class is a coarse kind of error; there are few enough to use as an attribute.
type class int

const (
	classNotFound class = iota
	classMismatch
	classCorrupt
	classCancelled
	classOther
	classes
)

func (c class) String() string {
	return [...]string{"not_found", "mismatch", "corrupt", "cancelled", "other"}[c]
}

func classify(err error) class {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return classNotFound
	case errors.Is(err, blob.ErrMismatch):
		return classMismatch
	case errors.Is(err, blob.ErrCorrupt):
		return classCorrupt
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return classCancelled
	}
	return classOther
}

// instruments hold everything that a measurement needs, so that it allocates nothing.
type instruments struct {
	durations [ops]meter.Histogram
	errors    [ops][classes]meter.Counter
}

// boundaries range from a hit in memory to a remote that times out.
var boundaries = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000}

func newInstruments(provider meter.Provider, kind string) instruments {
	m := meter.Of(provider, "github.com/stet-dev/stet/blob/metered")
	var in instruments
	for o := range ops {
		in.durations[o] = m.Histogram("agent_kv."+kind+"."+o.String()+".duration_ms", "Duration in milliseconds.", boundaries)
		for c := range classes {
			in.errors[o][c] = m.Counter("agent_kv."+kind+".errors", "Calls that failed.", "op", o.String(), "error", c.String())
		}
	}
	return in
}

func (in *instruments) record(ctx context.Context, o op, begin time.Time, err error) {
	in.durations[o].Record(ctx, float64(time.Since(begin))/float64(time.Millisecond))
	if err != nil {
		in.errors[o][classify(err)].Add(ctx, 1)
	}
}

// cleanKind makes a kind part of a valid and readable metric name.
func cleanKind(kind string) string {
	if kind == "" {
		return "store"
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, kind)
}
