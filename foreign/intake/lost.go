package intake

import (
	"context"
	"encoding/json"
	"slices"
)

// mostLost is how many parts that cannot be read are remembered of a session.
const mostLost = 100

// lost are the parts of a session that cannot be read. Those behind which a turn was copied
// are not read again, so they are remembered: else a second import would say that all is
// well.
type lost struct {
	kept   string   // the label
	passed []string // behind which a turn was copied
	ahead  []string // found since the last turn, and found again by the next pass
	now    []string // found by this pass
}

func (l *lost) read(label string) {
	l.kept = label
	_ = json.Unmarshal([]byte(label), &l.passed) // nothing is known if it is not ours
}

// again begins a pass over the whole session.
func (l *lost) again() { l.passed, l.ahead = nil, nil }

func (l *lost) found(err error) {
	l.ahead, l.now = append(l.ahead, err.Error()), append(l.now, err.Error())
}

// pass says that a turn was copied.
func (l *lost) pass() {
	for _, part := range l.ahead {
		if !slices.Contains(l.passed, part) && len(l.passed) < mostLost {
			l.passed = append(l.passed, part)
		}
	}
	l.ahead = nil
}

// keepLost remembers what the next pass does not read again.
func (p *pass) keepLost(ctx context.Context) error {
	for _, part := range p.lost.passed {
		if !slices.Contains(p.lost.now, part) {
			p.result.Passed = append(p.result.Passed, part)
		}
	}
	label := ""
	if len(p.lost.passed) > 0 {
		data, err := json.Marshal(p.lost.passed)
		if err != nil {
			return err
		}
		label = string(data)
	}
	if label == p.lost.kept {
		return nil
	}
	if err := p.store.SetLabel(ctx, p.session.ID, LabelUnreadable, label); err != nil {
		return err
	}
	return p.rows.flush(ctx)
}
