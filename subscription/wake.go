package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/stream"
)

// Wake is a wake that has begun, or that a worker has claimed.
type Wake struct {
	// Subscription has its links as they were, with Generation and Wake.
	Subscription
}

// Answer is a worker's answer to a wake.
type Answer struct {
	// Wake is the id of the wake.
	Wake string
	// Generation is the generation of the wake; it must be the one that the worker was
	// given.
	Generation uint64
	// Acks move cursors.
	Acks []Ack
	// Done ends the wake. Without it its lease is extended.
	Done bool
}

// Ack reports the offset up to which a stream was processed.
type Ack struct{ Path, Offset string }

// Grown wakes the subscriptions of a stream that has grown, and returns the wakes of
// webhooks, which the caller delivers. Wakes of other subscriptions are in their
// streams when it returns.
func (s *Store) Grown(ctx context.Context, path string) ([]Wake, error) {
	var wakes []Wake
	for sub, err := range s.List(ctx) {
		if err != nil {
			return wakes, err
		}
		if !sub.Due.IsZero() && !s.now().Before(sub.Due) {
			due, err := s.Due(ctx, sub.ID) // the process that was to do it may be gone
			if err != nil && !errors.Is(err, ErrNotFound) {
				return wakes, err
			}
			wakes = append(wakes, due...)
		}
		woken, err := s.wake(ctx, sub.ID, func(rec *stetv1.SubscriptionRecord) (string, bool) {
			if rec.Pattern != "" && Match(rec.Pattern, path) && len(rec.Links) < maxStreams {
				linkAt(rec, path, false, before)
			}
			_, linked := position(rec, path)
			return path, linked && rec.Wake == "" && rec.Holder == ""
		})
		if err != nil && !errors.Is(err, ErrNotFound) { // deleted since
			return wakes, err
		}
		wakes = append(wakes, woken...)
	}
	return wakes, nil
}

// Due does the work of a subscription that needs no request: it ends a wake whose
// lease is over, begins the next one, and returns a wake of a webhook that must be
// delivered, again or for the first time.
func (s *Store) Due(ctx context.Context, id string) ([]Wake, error) {
	again := false
	woken, err := s.wake(ctx, id, func(rec *stetv1.SubscriptionRecord) (string, bool) {
		now := s.now().UnixMilli()
		again = false
		switch {
		case rec.Wake != "" && rec.LeaseUntilMs > 0 && now >= rec.LeaseUntilMs:
			end(rec)
		case rec.Wake != "" && rec.NextAttemptMs > 0 && now >= rec.NextAttemptMs:
			rec.NextAttemptMs, again = 0, true
			rec.LeaseUntilMs = now + rec.LeaseMs
		}
		return "", rec.Wake == ""
	})
	if err != nil || !again {
		return woken, err
	}
	sub, err := s.Get(ctx, id)
	if err != nil || sub.Wake == "" {
		return nil, err
	}
	return []Wake{{sub}}, nil
}

// wake changes a subscription and, if ready allows it and there is something to
// process, begins a wake because of a stream.
func (s *Store) wake(ctx context.Context, id string, ready func(*stetv1.SubscriptionRecord) (because string, ok bool)) ([]Wake, error) {
	var begun *stetv1.SubscriptionRecord
	err := s.update(ctx, id, func(rec *stetv1.SubscriptionRecord) error {
		begun = nil
		because, ok := ready(rec)
		if !ok {
			return nil
		}
		found, err := s.begin(ctx, rec, because)
		if found {
			begun = rec
		}
		return err
	})
	if err != nil || begun == nil || begun.Kind != Webhook {
		return nil, err
	}
	sub, err := s.describe(ctx, begun)
	if err != nil {
		return nil, err
	}
	return []Wake{{sub}}, nil
}

// begin begins a wake if there is something to process.
func (s *Store) begin(ctx context.Context, rec *stetv1.SubscriptionRecord, because string) (bool, error) {
	found := false
	for _, l := range rec.Links {
		tail, err := s.tail(ctx, l.Path)
		if err != nil {
			return false, err
		}
		if l.Woken = tail; pending(l.Acked, tail) {
			if !found && because == "" {
				because = l.Path
			}
			found = true
		}
	}
	if !found {
		return false, nil
	}
	rec.Generation++
	rec.Wake, rec.Holder, rec.Failures, rec.NextAttemptMs, rec.LeaseUntilMs = newWake(), "", 0, 0, 0
	if rec.Kind == Webhook {
		rec.LeaseUntilMs = s.now().UnixMilli() + rec.LeaseMs
		return true, nil
	}
	// The event comes before the record: an extra event does no harm, since a claim
	// looks at the record. A wake without its event would wait forever.
	return true, s.event(ctx, rec, because)
}

// event writes a wake into its stream. Without that stream no worker is woken;
// workers can still claim.
func (s *Store) event(ctx context.Context, rec *stetv1.SubscriptionRecord, because string) error {
	data, err := json.Marshal(map[string]any{
		"type": "wake", "subscription_id": rec.Id, "stream": because, "generation": rec.Generation, "ts": s.now().UnixMilli(),
	})
	if err != nil {
		return err
	}
	info, err := s.streams.Info(ctx, rec.WakeStream)
	if err == nil {
		_, err = s.streams.Append(ctx, rec.WakeStream, stream.Append{ContentType: info.ContentType, Data: data})
	}
	if errors.Is(err, stream.ErrNotFound) || errors.Is(err, stream.ErrGone) || errors.Is(err, stream.ErrClosed) {
		return nil
	}
	return err
}

// end ends the wake under way.
func end(rec *stetv1.SubscriptionRecord) {
	rec.Wake, rec.Holder, rec.LeaseUntilMs, rec.NextAttemptMs, rec.Failures = "", "", 0, 0, 0
}

// Claim gives the wake of a pull-wake subscription to a worker. It fails with ErrClaimed
// while another one has it, and with ErrIdle if there is nothing to process.
func (s *Store) Claim(ctx context.Context, id, worker string) (Wake, error) {
	if worker == "" || len(worker) > 256 {
		return Wake{}, invalid("a worker needs a name of up to 256 bytes")
	}
	var claimed *stetv1.SubscriptionRecord
	err := s.update(ctx, id, func(rec *stetv1.SubscriptionRecord) error {
		now := s.now().UnixMilli()
		if rec.Kind != PullWake {
			return invalid("subscription %s is not a %s", id, PullWake)
		}
		if rec.Holder != "" && now < rec.LeaseUntilMs {
			return &ClaimedError{Holder: rec.Holder, Generation: rec.Generation}
		}
		if rec.Holder != "" {
			end(rec) // the lease of the other worker is over
		}
		if rec.Wake == "" {
			found, err := s.begin(ctx, rec, "")
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("subscription %s: %w", id, ErrIdle)
			}
		}
		rec.Holder, rec.LeaseUntilMs = worker, now+rec.LeaseMs
		claimed = rec
		return nil
	})
	if err != nil {
		return Wake{}, err
	}
	sub, err := s.describe(ctx, claimed)
	return Wake{sub}, err
}

// Answer handles a worker's answer to the wake of a generation, which its token
// names. more means that there is already another wake; the caller delivers the
// returned ones.
func (s *Store) Answer(ctx context.Context, id string, generation uint64, a Answer) (more bool, wakes []Wake, err error) {
	err = s.update(ctx, id, func(rec *stetv1.SubscriptionRecord) error {
		if rec.Wake == "" || rec.Wake != a.Wake || rec.Generation != generation || rec.Generation != a.Generation {
			return fmt.Errorf("subscription %s: %w", id, ErrFenced)
		}
		if rec.LeaseUntilMs > 0 && s.now().UnixMilli() >= rec.LeaseUntilMs {
			return fmt.Errorf("subscription %s: %w: its lease has ended", id, ErrFenced)
		}
		if err := s.ack(ctx, rec, a.Acks); err != nil {
			return err
		}
		rec.Failures, rec.NextAttemptMs = 0, 0
		if rec.LeaseUntilMs = s.now().UnixMilli() + rec.LeaseMs; a.Done {
			end(rec)
		}
		return nil
	})
	if err != nil || !a.Done {
		return false, nil, err
	}
	wakes, err = s.wake(ctx, id, func(rec *stetv1.SubscriptionRecord) (string, bool) { return "", rec.Wake == "" })
	if err != nil {
		return false, nil, err
	}
	rec, _, err := s.load(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return false, nil, nil
	}
	return err == nil && rec.Generation > generation, wakes, err
}

// Finished handles the answer of a webhook that processed everything it was woken
// for.
func (s *Store) Finished(ctx context.Context, w Wake) ([]Wake, error) {
	a := Answer{Wake: w.Wake, Generation: w.Generation, Done: true}
	rec, _, err := s.load(ctx, w.ID)
	if err != nil {
		return nil, err
	}
	for _, l := range rec.Links {
		if l.Woken > l.Acked {
			a.Acks = append(a.Acks, Ack{Path: l.Path, Offset: l.Woken})
		}
	}
	_, wakes, err := s.Answer(ctx, w.ID, w.Generation, a)
	return wakes, err
}

// maxRetry is the longest wait before a delivery is tried again.
const maxRetry = time.Minute

// Failed records that a wake could not be delivered. jitter, between 0 and 1, spreads
// the next attempt.
func (s *Store) Failed(ctx context.Context, w Wake, jitter float64) error {
	return s.update(ctx, w.ID, func(rec *stetv1.SubscriptionRecord) error {
		if rec.Wake != w.Wake {
			return nil
		}
		wait := min(time.Second<<min(rec.Failures, 10), maxRetry)
		wait += time.Duration(float64(wait) * 0.4 * (jitter - 0.5))
		rec.Failures++
		rec.NextAttemptMs = s.now().Add(wait).UnixMilli()
		rec.LeaseUntilMs = 0 // the next attempt begins another one
		return nil
	})
}

// ack moves cursors, all of them or none.
func (s *Store) ack(ctx context.Context, rec *stetv1.SubscriptionRecord, acks []Ack) error {
	for _, a := range acks {
		path := Path(a.Path)
		i, ok := position(rec, path)
		if !ok {
			return fmt.Errorf("%w: %.128q is not part of the subscription", ErrCursor, path)
		}
		if _, err := stream.ParseOffset(a.Offset); err != nil || a.Offset < rec.Links[i].Acked {
			return fmt.Errorf("%w: stream %s was processed up to %s, %.64q is not after it", ErrCursor, path, rec.Links[i].Acked, a.Offset)
		}
		tail, err := s.tail(ctx, path)
		if err != nil {
			return err
		}
		if a.Offset > tail {
			return fmt.Errorf("%w: stream %s ends at %s", ErrCursor, path, tail)
		}
	}
	for _, a := range acks {
		i, _ := position(rec, Path(a.Path))
		rec.Links[i].Acked = a.Offset
	}
	return nil
}
