package codex

import (
	"context"
	"fmt"
	"math"

	"github.com/stet-dev/stet/foreign"
)

// piece is a part of a conversation: a rollout up to a line.
type piece struct {
	rollout
	end int64 // ordinal of the first line that is not part of it
	// rewound means that the conversation continues here after an earlier turn, which is
	// the last one of before.
	rewound bool
	before  []piece
}

const noEnd = math.MaxInt64

// maxChain is the longest chain of files that continue each other.
const maxChain = 64

// before returns the parts that a rollout continues, the oldest first.
func (l library) before(ctx context.Context, r rollout) ([]piece, error) {
	var chain []piece
	for r.base != nil {
		if len(chain) >= maxChain {
			return nil, unreadable(fmt.Errorf("session %s continues itself", r.id))
		}
		origin, err := l.origin(ctx, r)
		if err != nil {
			return nil, err
		}
		chain = append([]piece{{rollout: origin, end: r.base.Ordinal}}, chain...)
		r = origin
	}
	return chain, nil
}

// origin returns the rollout that another one continues: the newest older one of the
// session that reaches that far. A session that was reverted has several.
func (l library) origin(ctx context.Context, r rollout) (rollout, error) {
	files, err := l.thread(ctx, r.base.Thread)
	if err != nil {
		return rollout{}, err
	}
	var found *rollout
	for i, f := range files {
		older := f.time < r.time || f.time == r.time && (f.id != r.id || f.segment < r.segment)
		if f.path != r.path && older && f.first < r.base.Ordinal {
			found = &files[i]
		}
	}
	if found == nil {
		return rollout{}, unreadable(fmt.Errorf("session %s continues %s, which is not there", r.id, r.base.Thread))
	}
	return *found, nil
}

// pieces returns the parts of a session in the order in which they were written: what
// it was forked from, its first rollout, and those that were written after it was
// reverted. A subagent has only its own work. If the origin is missing, the error
// says so and the rest is returned.
func (l library) pieces(ctx context.Context, s foreign.Session) ([]piece, error) {
	own, err := l.rollouts(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []piece
	var missing error
	for i, r := range own {
		p := piece{rollout: r, end: noEnd}
		if r.parent == "" || i > 0 {
			p.before, err = l.before(ctx, r)
			if err != nil {
				missing = err
			}
		}
		if i == 0 {
			for n, b := range p.before {
				b.before = p.before[:n]
				out = append(out, b)
			}
		}
		p.rewound = i > 0 && r.base != nil && err == nil
		out = append(out, p)
	}
	return out, missing
}
