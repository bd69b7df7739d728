package cloudagent

import (
	"context"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
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

// Stream yields the events of an agent, until ctx is done, the caller stops, or the
// agent ends. Without a place to resume from, it begins with the initial state,
// directly followed by the status with the offset of that state. Events are read from
// the rows as the caller consumes them, at most a few hundred at once. Every event
// comes once and in order; a missing one ends the stream with ErrDataLoss.
func (s *Store) Stream(ctx context.Context, agent string, opts *StreamOptions) iter.Seq2[*response, error] {
	if opts == nil {
		opts = &StreamOptions{}
	}
	return func(yield func(*response, error) bool) {
		if err := checkID("agent", agent); err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r := &reader{s: s, agent: agent, opts: *opts, yield: yield, sent: make(map[blob.ID]struct{})}
		r.fillDefaults()
		// Watching begins before the first read, so that no event is missed.
		r.hints = s.rows.Watch(ctx, keyspace.AgentEvents(agent, 0))
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
	yield   func(*response, error) bool
	stopped bool // by the caller
	said    bool // something was sent
	hints   <-chan struct{}
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
func (r *reader) send(m *response) bool {
	r.last, r.said = time.Now(), true
	r.stopped = r.stopped || !r.yield(m, nil)
	return !r.stopped
}

func (r *reader) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil || r.stopped {
		return err
	}
	for {
		events, ok, err := r.s.read(ctx, r.agent, r.at)
		for _, e := range events {
			if err := r.event(ctx, e); err != nil || r.stopped {
				return err
			}
		}
		if err != nil {
			return err
		}
		if len(events) > 0 {
			continue
		}
		done, err := r.idle(ctx, ok)
		if err != nil || done || r.stopped {
			return err
		}
	}
}

// begin finds the place to continue from, or sends the initial state.
func (r *reader) begin(ctx context.Context) error {
	rec, err := r.record(ctx)
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

func (r *reader) record(ctx context.Context) (*stetv1.AgentRecord, error) {
	l := r.s.lane(r.agent)
	defer r.s.release(l)
	now, err := r.s.load(ctx, l)
	return now.rec, err
}

// idle is called after a read without events; clean means that it saw no foreign
// event. It waits for more, and reports whether the stream is over.
func (r *reader) idle(ctx context.Context, clean bool) (bool, error) {
	rec, err := r.record(ctx)
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
	if clean && Terminal(rec.Status) && !r.opts.AllowTerminal {
		if !r.said { // a reader that resumes at the end must get the end
			r.send(statusAt(rec.Status, r.at))
		}
		return true, nil
	}
	return false, r.sleep(ctx)
}

// sleep waits for a hint or the next poll, and keeps the stream alive.
func (r *reader) sleep(ctx context.Context) error {
	d := r.s.opts.Poll
	if r.opts.Heartbeat > 0 {
		d = min(d, max(0, r.opts.Heartbeat-time.Since(r.last)))
	}
	if err := lane.Wait(ctx, r.hints, d); err != nil {
		return err
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
func (r *reader) event(ctx context.Context, e event) error {
	m, err := r.message(ctx, e)
	if err != nil {
		return err
	}
	r.at = e.at
	r.send(m)
	return nil
}

func (r *reader) message(ctx context.Context, e event) (*response, error) {
	switch v := e.rec.Event.(type) {
	case *stetv1.AgentEventRecord_Update:
		u := new(agentv1.InteractionUpdate)
		if err := proto.Unmarshal(v.Update, u); err != nil {
			return nil, fmt.Errorf("%w: event %d of agent %s: %w", ErrDataLoss, e.at.Seq, r.agent, err)
		}
		if r.opts.FilterHeavyStepData {
			lighten(u)
		}
		return &response{Message: &aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset_{
			InteractionUpdateWithOffset: &updateMessage{OffsetKey: e.at.String(), InteractionUpdate: u},
		}}, nil
	case *stetv1.AgentEventRecord_State:
		return r.stateMessage(ctx, e, v.State)
	case *stetv1.AgentEventRecord_Status:
		return statusAt(v.Status, e.at), nil
	}
	return nil, fmt.Errorf("%w: event %d of agent %s is of an unknown kind", ErrNewerFormat, e.at.Seq, r.agent)
}

func statusAt(s Status, at Offset) *response {
	return &response{Message: &aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset_{
		WorkflowStatusWithOffset: &statusMessage{OffsetKey: at.String(), WorkflowStatus: s},
	}}
}

func (r *reader) stateMessage(ctx context.Context, e event, rawID []byte) (*response, error) {
	id, err := blob.IDFromBytes(rawID)
	if err != nil {
		return nil, fmt.Errorf("%w: event %d of agent %s: %w", ErrDataLoss, e.at.Seq, r.agent, err)
	}
	state, err := r.inline(ctx, id)
	if err != nil {
		return nil, err
	}
	blobs, err := r.eventBlobs(ctx, e)
	if err != nil {
		return nil, err
	}
	return &response{Message: &aiserverv1.StreamConversationResponse_CloudAgentStateWithIdAndOffset_{
		CloudAgentStateWithIdAndOffset: &stateMessage{
			OffsetKey: e.at.String(), BlobId: id.Bytes(), CloudAgentState: state, PreFetchedBlobs: blobs,
		},
	}}, nil
}

// maxInline is the size up to which a state is sent with its event. A reader fetches a
// larger one by its id, as it does any large blob.
const maxInline = 2 << 20

// inline returns a state to be sent, or nil if it is too large for a message.
func (r *reader) inline(ctx context.Context, id blob.ID) (*aiserverv1.CloudAgentState, error) {
	state, err := r.s.State(ctx, r.agent, id)
	if err != nil || proto.Size(state) > maxInline {
		return nil, err
	}
	return state, nil
}

// initial sends the initial state and its place.
func (r *reader) initial(ctx context.Context, rec *stetv1.AgentRecord) error {
	m := &initialState{WorkflowStatus: rec.Status}
	if id := stateOf(rec); !id.IsZero() {
		state, err := r.inline(ctx, id)
		if err != nil {
			return err
		}
		m.BlobId, m.CloudAgentState = id.Bytes(), state
		if err := r.prefetch(ctx, id, m); err != nil || r.stopped {
			return err
		}
	}
	r.at = offsetOf(rec.StateAt)
	_ = r.send(&response{Message: &aiserverv1.StreamConversationResponse_InitialState_{InitialState: m}}) &&
		r.send(statusAt(rec.Status, r.at))
	return nil
}
