package cloudagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/lane"
)

// Receiver is one connection to a stream.
type Receiver interface {
	// Receive returns the next response; io.EOF after the last.
	Receive(ctx context.Context) (*aiserverv1.StreamConversationResponse, error)
	// Close closes the connection.
	Close() error
}

// FollowOptions configure Follow. Only Dial is required.
type FollowOptions struct {
	// Dial opens the stream after an offset; "" requests the initial state.
	Dial func(ctx context.Context, after string) (Receiver, error)
	// Fetch gets blobs that a state needs but that were not sent with it, and states
	// that are too large for the stream. It leaves out blobs that the peer does not have
	// or that are damaged there; an error means that the connection failed. Without it,
	// states may be incomplete.
	Fetch func(ctx context.Context, ids []blob.ID) ([]blob.Blob, error)
	// Cache stores states and blobs. Without it, Fetch is used for large states only.
	Cache blob.Store
	// After is the last offset that the caller has handled.
	After string
	// Permanent, if set, reports errors that a new connection cannot fix, besides
	// those of this package.
	Permanent func(error) bool
	// MinBackoff and MaxBackoff limit the wait before a new connection, 100 ms and 10
	// s by default.
	MinBackoff, MaxBackoff time.Duration
	// Silence is how long a connection may be silent, heartbeats included, before it
	// counts as lost; a minute by default.
	Silence time.Duration
}

// Event is an event of an agent. One of State, Update and Status is set; the initial
// state has a status and, if there is one, a state.
type Event struct {
	// Offset is the place after the event, to resume from.
	Offset string
	// Initial means that the follower starts over: the state includes everything
	// before the offset.
	Initial bool
	State   *aiserverv1.CloudAgentState
	StateID blob.ID
	// Missing are blobs of the state that the peer cannot provide, such as damaged ones.
	Missing []blob.ID
	Update  *agentv1.InteractionUpdate
	Status  Status
	// Other is a response of a kind that this release does not interpret.
	Other *aiserverv1.StreamConversationResponse
}

// Follow yields the events of an agent, each once and in order, whatever happens to
// the connection. It ends when the agent has ended, when ctx is done, or with an
// error that a new connection cannot fix.
//
// Follow never takes the end of a connection for the end of the log: a server that
// stops ends its streams properly, too. The log has ended if a connection that
// resumes after an offset is answered with a final status at that very offset.
func Follow(ctx context.Context, opts FollowOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{opts: opts, yield: yield}
		f.fillDefaults()
		if err := f.run(ctx); err != nil && !f.stopped {
			yield(Event{}, err)
		}
	}
}

// follower is a running Follow.
type follower struct {
	opts     FollowOptions
	yield    func(Event, error) bool
	stopped  bool // by the caller
	after    string
	pending  *Event // an initial state whose offset is not known yet
	terminal bool   // the last status was terminal
	resumed  bool   // the connection resumed after an offset and nothing has come yet
	ended    bool   // the peer reported that nothing follows the offset, and never will
	progress bool   // something arrived on the current connection
	gaps     int    // consecutive connections that skipped an event
	have     map[ref]struct{}
}

func (f *follower) fillDefaults() {
	f.after = f.opts.After
	if f.opts.MinBackoff <= 0 {
		f.opts.MinBackoff = 100 * time.Millisecond
	}
	if f.opts.MaxBackoff <= 0 {
		f.opts.MaxBackoff = 10 * time.Second
	}
	f.opts.MaxBackoff = max(f.opts.MaxBackoff, f.opts.MinBackoff)
	if f.opts.Silence <= 0 {
		f.opts.Silence = time.Minute
	}
	f.have = make(map[ref]struct{})
}

func (f *follower) run(ctx context.Context) error {
	if f.opts.Dial == nil {
		return invalid("following needs Dial")
	}
	wait := f.opts.MinBackoff
	for {
		f.progress = false
		err := f.connect(ctx)
		switch {
		case f.stopped:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case f.ended:
			return nil
		case err != nil && f.permanent(err):
			return err
		case err == nil && f.terminal && f.progress:
			// Either the agent has ended or the server is stopping. Only the answer to
			// a new connection says which; there is no load to spread yet.
			continue
		}
		if f.progress {
			wait = f.opts.MinBackoff
		}
		// Half of the wait is random, so that followers of a restarted server do not
		// all reconnect at once.
		if err := lane.Pause(ctx, wait/2+rand.N(wait/2+1)); err != nil {
			return err
		}
		wait = min(2*wait, f.opts.MaxBackoff)
	}
}

func (f *follower) permanent(err error) bool {
	for _, p := range []error{ErrNotFound, ErrInvalid, ErrDataLoss, ErrNewerFormat, ErrMetadataVersion} {
		if errors.Is(err, p) {
			return true
		}
	}
	var ours *cacheError
	return errors.As(err, &ours) || f.opts.Permanent != nil && f.opts.Permanent(err)
}

// connect follows one connection to its end; nil means that the peer ended it.
func (f *follower) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := f.opts.Dial(ctx, f.after)
	if err != nil {
		return err
	}
	defer r.Close() // Receive has returned any error
	f.pending, f.resumed = nil, f.after != ""
	for !f.stopped && !f.ended {
		m, err := f.receive(ctx, r)
		if errors.Is(err, io.EOF) {
			return nil // an initial state without its offset comes again
		}
		if err != nil {
			return err
		}
		if err := f.take(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// errSilent means that a silent connection was closed.
var errSilent = fault.New(fault.Unreachable, "nothing was received for too long")

func (f *follower) receive(ctx context.Context, r Receiver) (*aiserverv1.StreamConversationResponse, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.opts.Silence, errSilent)
	defer cancel()
	m, err := r.Receive(ctx)
	if err != nil && context.Cause(ctx) == errSilent {
		return nil, errSilent
	}
	return m, err
}

// take handles one response.
func (f *follower) take(ctx context.Context, m *aiserverv1.StreamConversationResponse) error {
	first := f.resumed
	f.resumed = false
	switch v := m.GetMessage().(type) {
	case *aiserverv1.StreamConversationResponse_InitialState_:
		return f.initial(ctx, v.InitialState)
	case *aiserverv1.StreamConversationResponse_PrefetchedBlobs_:
		return f.keep(ctx, v.PrefetchedBlobs.GetPreFetchedBlobs())
	case *aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset_:
		status, at := v.WorkflowStatusWithOffset.GetWorkflowStatus(), v.WorkflowStatusWithOffset.GetOffsetKey()
		if f.pending != nil && f.pending.Status == status {
			return f.deliverPending(ctx, at)
		}
		if first && at == f.after {
			// Sent only by a server whose log ends at this offset.
			f.terminal, f.ended = Terminal(status), Terminal(status)
			return nil
		}
		return f.give(ctx, Event{Offset: at, Status: status})
	case *aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset_:
		u := v.InteractionUpdateWithOffset
		return f.give(ctx, Event{Offset: u.GetOffsetKey(), Update: u.GetInteractionUpdate()})
	case *aiserverv1.StreamConversationResponse_CloudAgentStateWithIdAndOffset_:
		s := v.CloudAgentStateWithIdAndOffset
		id, err := blob.IDFromBytes(s.GetBlobId())
		if err != nil {
			return fmt.Errorf("state on the stream: %w", err)
		}
		if err := f.keep(ctx, s.GetPreFetchedBlobs()); err != nil {
			return err
		}
		return f.give(ctx, Event{Offset: s.GetOffsetKey(), State: s.GetCloudAgentState(), StateID: id})
	case *aiserverv1.StreamConversationResponse_StreamSignal_:
		return nil
	}
	return f.give(ctx, Event{Offset: otherOffset(m), Other: m})
}

// otherOffset finds the offset of responses that are only passed through.
func otherOffset(m *aiserverv1.StreamConversationResponse) string {
	switch v := m.GetMessage().(type) {
	case *aiserverv1.StreamConversationResponse_TransientErrorWithOffset_:
		return v.TransientErrorWithOffset.GetOffsetKey()
	case *aiserverv1.StreamConversationResponse_InteractionQueryWithOffset_:
		return v.InteractionQueryWithOffset.GetOffsetKey()
	case *aiserverv1.StreamConversationResponse_WorkerLifecycleEventWithOffset_:
		return v.WorkerLifecycleEventWithOffset.GetOffsetKey()
	case *aiserverv1.StreamConversationResponse_ReadOnlySharedPodLifecycleEventWithOffset_:
		return v.ReadOnlySharedPodLifecycleEventWithOffset.GetOffsetKey()
	}
	return ""
}

// initial holds back an initial state until its offset is known: a connection lost in
// between must not make the caller start over twice.
func (f *follower) initial(ctx context.Context, m *aiserverv1.StreamConversationResponse_InitialState) error {
	e := Event{Initial: true, State: m.GetCloudAgentState(), Status: m.GetWorkflowStatus()}
	if len(m.GetBlobId()) > 0 {
		id, err := blob.IDFromBytes(m.GetBlobId())
		if err != nil {
			return fmt.Errorf("initial state on the stream: %w", err)
		}
		e.StateID = id
	}
	if err := f.keep(ctx, m.GetPreFetchedBlobs()); err != nil {
		return err
	}
	f.pending = &e
	return nil
}

// deliverPending delivers the initial state that was held back.
func (f *follower) deliverPending(ctx context.Context, offset string) error {
	if f.pending == nil {
		return nil
	}
	e := *f.pending
	e.Offset = offset
	if err := f.complete(ctx, &e); err != nil {
		return err
	}
	f.pending = nil
	f.after = offset
	f.deliver(e)
	return nil
}

// maxGaps is how many consecutive connections may skip the same event.
const maxGaps = 3

// give delivers an event if it is the next one.
func (f *follower) give(ctx context.Context, e Event) error {
	if err := f.deliverPending(ctx, ""); err != nil || f.stopped {
		return err
	}
	if e.Offset != "" && f.after != "" {
		if e.Offset == f.after {
			return nil // a heartbeat, or a repetition
		}
		last, lastErr := ParseOffset(f.after)
		at, atErr := ParseOffset(e.Offset)
		if lastErr == nil && atErr == nil { // other servers format offsets differently
			switch {
			case at.Seq <= last.Seq:
				return nil
			case at.Seq > last.Seq+1:
				return f.gap(last, at)
			}
		}
	}
	if err := f.complete(ctx, &e); err != nil {
		return err
	}
	f.gaps = 0
	if e.Offset != "" {
		f.after = e.Offset
	}
	f.deliver(e)
	return nil
}

// gap requests skipped events on a new connection, and gives up on a peer that keeps
// skipping them.
func (f *follower) gap(last, at Offset) error {
	if f.gaps++; f.gaps >= maxGaps {
		return fmt.Errorf("%w: the stream goes from event %d to %d", ErrDataLoss, last.Seq, at.Seq)
	}
	return fmt.Errorf("the stream goes from event %d to %d", last.Seq, at.Seq)
}

func (f *follower) deliver(e Event) {
	f.progress = true
	if e.Status != 0 {
		f.terminal = Terminal(e.Status)
	}
	f.stopped = f.stopped || !f.yield(e, nil)
}
