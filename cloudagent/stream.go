package cloudagent

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// StreamOptions configure a stream; nil gives the defaults.
type StreamOptions struct {
	// After is the last offset that the reader has; the stream continues after it.
	// Without one, with one that is not in the log, or with the offset that an imported
	// agent had in the other program, the stream begins with the initial state.
	After string
	// FilterHeavyStepData leaves out the contents of large tool calls and large
	// blobs.
	FilterHeavyStepData bool
	// PrefetchedFirst sends the blobs of the initial state before it.
	PrefetchedFirst bool
	// SignalAfterPrefetch marks the end of those blobs.
	SignalAfterPrefetch bool
	// OnlyLastStep sends only the last step of each turn.
	OnlyLastStep bool
	// KnownBlobs are not sent, because the reader has them.
	KnownBlobs []blob.ID
	// MaxBlobsAfterPrefetch limits the blobs that come with a state, 64 by default; a
	// negative value means none. The reader fetches the others.
	MaxBlobsAfterPrefetch int
	// Heartbeat is the longest silence of the stream, 15 s by default; a negative
	// value means no limit.
	Heartbeat time.Duration
	// AllowTerminal keeps the stream of an archived or expired agent open. Without it
	// the stream ends after the last event; a stream with nothing to send repeats the
	// status first.
	AllowTerminal bool
}

// OptionsFor returns the options of a request.
func OptionsFor(req *aiserverv1.StreamConversationRequest) (*StreamOptions, error) {
	opts := &StreamOptions{
		After: req.GetOffsetKey(), FilterHeavyStepData: req.GetFilterHeavyStepData(),
		PrefetchedFirst: req.GetShouldSendPrefetchedBlobsFirst(), SignalAfterPrefetch: req.GetSendStreamSignalAfterPrefetch(),
		OnlyLastStep: req.GetPrefetchOnlyLastStepPerTurn(), AllowTerminal: req.GetAllowStreamingWhenTerminalStatus(),
	}
	if req.MaxBlobsAfterPrefetch != nil {
		opts.MaxBlobsAfterPrefetch = int(min(req.GetMaxBlobsAfterPrefetch(), maxPrefetch))
		if opts.MaxBlobsAfterPrefetch == 0 {
			opts.MaxBlobsAfterPrefetch = -1
		}
	}
	for _, raw := range req.GetPreFetchedBlobIds() {
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: pre_fetched_blob_ids: %w", ErrInvalid, err)
		}
		opts.KnownBlobs = append(opts.KnownBlobs, id)
	}
	return opts, nil
}

type (
	response      = aiserverv1.StreamConversationResponse
	initialState  = aiserverv1.StreamConversationResponse_InitialState
	updateMessage = aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset
	stateMessage  = aiserverv1.StreamConversationResponse_CloudAgentStateWithIdAndOffset
	statusMessage = aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset
)

// Stream is Messages for callers that need only the responses.
func (s *Store) Stream(ctx context.Context, agent string, opts *StreamOptions) iter.Seq2[*response, error] {
	return func(yield func(*response, error) bool) {
		for m, err := range s.Messages(ctx, agent, opts) {
			var res *response
			if m != nil {
				res = m.StreamConversationResponse
			}
			if !yield(res, err) {
				return
			}
		}
	}
}

// Messages yields the events of an agent, until ctx is done, the caller stops, or the
// agent ends. Without a place to resume from, it begins with the initial state,
// directly followed by the status with the offset of that state. Every event
// comes once and in order; a missing one ends the stream with ErrDataLoss.
//
// The streams of an agent share the end of its log: new events are read once, and their
// messages made once. A stream that is behind reads from the rows as the caller consumes,
// at most a few hundred events at once.
func (s *Store) Messages(ctx context.Context, agent string, opts *StreamOptions) iter.Seq2[*Message, error] {
	if opts == nil {
		opts = &StreamOptions{}
	}
	return func(yield func(*Message, error) bool) {
		if err := checkID("agent", agent); err != nil {
			yield(nil, err)
			return
		}
		r := &reader{s: s, agent: agent, opts: *opts, yield: yield, sent: make(map[blob.ID]struct{})}
		r.fillDefaults()
		r.tail = s.follow(agent)
		defer r.tail.Leave()
		if err := r.run(ctx); err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

// reader is a running stream.
type reader struct {
	s       *Store
	agent   string
	opts    StreamOptions
	yield   func(*Message, error) bool
	stopped bool // by the caller
	said    bool // something was sent
	tail    *follows
	at      Offset // what was sent
	last    time.Time
	sent    map[blob.ID]struct{} // blobs that the client has
}

func (r *reader) fillDefaults() {
	if r.opts.MaxBlobsAfterPrefetch == 0 {
		r.opts.MaxBlobsAfterPrefetch = 64
	}
	if r.opts.Heartbeat == 0 {
		r.opts.Heartbeat = 15 * time.Second
	}
	for _, id := range r.opts.KnownBlobs {
		r.noteSent(id)
	}
}

// send reports whether the caller wants more.
func (r *reader) send(m *response) bool { return r.give(unshared(m)) }

func (r *reader) give(m *Message) bool {
	r.last, r.said = time.Now(), true
	r.stopped = r.stopped || !r.yield(m, nil)
	return !r.stopped
}

func (r *reader) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil || r.stopped {
		return err
	}
	for {
		var done bool
		var err error
		switch view := r.tail.Look(r.at); {
		case view.Found:
			if err = ctx.Err(); err == nil {
				err = r.event(ctx, view.Entry)
			}
		case view.Current:
			done, err = r.current(ctx, view)
		default:
			done, err = r.catchUp(ctx, view)
		}
		if err != nil || done || r.stopped {
			return err
		}
	}
}

// current is called for a stream that has sent everything. It waits for more, and reports
// whether the stream is over.
func (r *reader) current(ctx context.Context, view tailView) (bool, error) {
	if view.State != nil && r.over(view.State) {
		return true, nil
	}
	return false, r.sleep(ctx, view, 0)
}

// catchUp reads what the shared end of the log does not have.
func (r *reader) catchUp(ctx context.Context, view tailView) (bool, error) {
	events, ok, err := r.s.read(ctx, r.agent, r.at)
	for _, e := range events {
		if err := r.event(ctx, &entry{event: e, before: r.at, agent: r.agent}); err != nil || r.stopped {
			return false, err
		}
	}
	if err != nil || len(events) > 0 {
		return false, err
	}
	return r.idle(ctx, ok, view)
}

// begin finds the place to continue from, or sends the initial state.
func (r *reader) begin(ctx context.Context) error {
	rec, err := r.s.record(ctx, r.agent)
	if err != nil {
		return err
	}
	if r.opts.After == "" {
		return r.initial(ctx, rec)
	}
	if r.opts.After == rec.ForeignOffset {
		return r.initial(ctx, rec) // all that the import brought
	}
	at, err := ParseOffset(r.opts.After)
	if err != nil {
		return err
	}
	ok, err := r.s.inLog(ctx, rec, at)
	if err != nil {
		return err
	}
	if !ok {
		return r.initial(ctx, rec)
	}
	r.at, r.last = at, time.Now()
	return nil
}

// idle is called after a read without events; clean means that it saw no foreign
// event. It waits for more, and reports whether the stream is over.
func (r *reader) idle(ctx context.Context, clean bool, view tailView) (bool, error) {
	rec, err := r.s.record(ctx, r.agent)
	if err != nil {
		return false, err
	}
	where, err := r.s.compare(ctx, rec, r.at)
	if err != nil {
		return false, err
	}
	switch where {
	case foreign: // the store was restored from a backup
		if r.at == offsetOf(rec.StateAt) { // the initial state would lead here again
			return false, dataLoss(r.agent, "its state is at %s, which is not in the log", r.at)
		}
		return false, r.initial(ctx, rec)
	case behind:
		// The record is committed with its events, so they are visible now.
		events, _, err := r.s.read(ctx, r.agent, r.at)
		if err == nil && len(events) == 0 {
			err = dataLoss(r.agent, "event %d of %d is missing", r.at.Seq+1, rec.Head.GetSeq())
		}
		return false, err
	}
	if clean && r.over(rec) {
		return true, nil
	}
	return false, r.sleep(ctx, view, r.s.opts.Poll)
}

// over reports whether nothing follows the end of the log, and never will.
func (r *reader) over(rec *stetv1.AgentRecord) bool {
	if !Terminal(rec.Status) || r.opts.AllowTerminal {
		return false
	}
	if !r.said { // a reader that resumes at the end must get the end
		r.send(statusAt(rec.Status, r.at))
	}
	return true
}

// sleep waits for a change, and at most for a time if there is one, and keeps the stream
// alive.
func (r *reader) sleep(ctx context.Context, view tailView, most time.Duration) error {
	due := false
	if r.opts.Heartbeat > 0 {
		left := r.opts.Heartbeat - time.Since(r.last)
		if due = left <= 0; most <= 0 || left < most {
			most = left
		}
	}
	if !due {
		if err := r.tail.Wait(ctx, view, most); err != nil {
			return err
		}
	}
	if r.opts.Heartbeat > 0 && time.Since(r.last) >= r.opts.Heartbeat {
		r.send(&response{Message: &aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset_{
			InteractionUpdateWithOffset: &updateMessage{
				OffsetKey:         r.at.String(),
				InteractionUpdate: &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_Heartbeat{Heartbeat: &agentv1.HeartbeatUpdate{}}},
			},
		}})
	}
	return nil
}

// event sends an event of the log.
func (r *reader) event(ctx context.Context, e *entry) error {
	m, err := r.message(ctx, e)
	if err != nil {
		return err
	}
	r.at = e.at
	r.give(m)
	return nil
}

func statusAt(s Status, at Offset) *response {
	return &response{Message: &aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset_{
		WorkflowStatusWithOffset: &statusMessage{OffsetKey: at.String(), WorkflowStatus: s},
	}}
}

// initial sends the initial state and its place.
func (r *reader) initial(ctx context.Context, rec *stetv1.AgentRecord) error {
	m := &initialState{WorkflowStatus: rec.Status}
	if id := stateOf(rec); !id.IsZero() {
		state, err := r.s.sharedState(ctx, r.agent, id)
		if err != nil {
			return err
		}
		m.BlobId, m.CloudAgentState = id.Bytes(), fitting(state)
		if err := r.prefetch(ctx, id, m); err != nil || r.stopped {
			return err
		}
	}
	r.at = offsetOf(rec.StateAt)
	_ = r.send(&response{Message: &aiserverv1.StreamConversationResponse_InitialState_{InitialState: m}}) &&
		r.send(statusAt(rec.Status, r.at))
	return nil
}
