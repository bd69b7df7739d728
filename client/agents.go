package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	anyrunv1 "github.com/stet-dev/stet/gen/anyrun/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// Agents are the cloud agents of a server. Errors wrap those of package
// cloudagent.
type Agents struct{ c *Client }

// Agents returns the cloud agents.
func (c *Client) Agents() *Agents { return &Agents{c: c} }

// Create makes an agent; with an empty id the server chooses one.
func (a *Agents) Create(ctx context.Context, id, name, conversation string) (*stetv1.Agent, error) {
	res, err := a.c.agents.Create(ctx, &stetv1.CreateAgentRequest{Id: id, Name: name, Conversation: conversation})
	if err != nil {
		return nil, agentError(ctx, err)
	}
	return res.GetAgent(), nil
}

// Get describes an agent.
func (a *Agents) Get(ctx context.Context, id string) (*stetv1.Agent, error) {
	res, err := a.c.agents.Get(ctx, &stetv1.GetAgentRequest{Id: id})
	if err != nil {
		return nil, agentError(ctx, err)
	}
	return res.GetAgent(), nil
}

// List yields all agents, a page at a time.
func (a *Agents) List(ctx context.Context) iter.Seq2[*stetv1.Agent, error] {
	return func(yield func(*stetv1.Agent, error) bool) {
		page := &stetv1.Page{}
		for {
			res, err := a.c.agents.List(ctx, &stetv1.ListAgentsRequest{Page: page})
			if err != nil {
				yield(nil, agentError(ctx, err))
				return
			}
			for _, agent := range res.GetAgents() {
				if !yield(agent, nil) {
					return
				}
			}
			if page.Cursor = res.GetNextCursor(); page.Cursor == "" {
				return
			}
		}
	}
}

// Append adds updates to an agent's log, all or none, and returns the offset of the
// last. If the answer is lost, only an append with a key can be repeated safely: it
// adds nothing the second time and returns the same offset.
func (a *Agents) Append(ctx context.Context, id, key string, updates ...*agentv1.InteractionUpdate) (string, error) {
	res, err := a.c.agents.AppendUpdate(ctx, &stetv1.AppendUpdateRequest{Id: id, Updates: updates, IdempotencyKey: key})
	if err != nil {
		return "", agentError(ctx, err)
	}
	return res.GetOffsetKey(), nil
}

// SaveState stores a state with its blobs, its offset and its event together. Parts
// that do not fit into a message are sent first, as blobs.
func (a *Agents) SaveState(ctx context.Context, id string, state *aiserverv1.CloudAgentState, blobs ...blob.Blob) (blob.ID, string, error) {
	req, err := a.saveRequest(ctx, id, state, blobs)
	if err != nil {
		return blob.ID{}, "", err
	}
	res, err := a.c.agents.SaveState(ctx, req)
	if err != nil {
		return blob.ID{}, "", agentError(ctx, err)
	}
	saved, err := blob.IDFromBytes(res.GetBlobId())
	return saved, res.GetOffsetKey(), err
}

func (a *Agents) saveRequest(ctx context.Context, id string, state *aiserverv1.CloudAgentState, blobs []blob.Blob) (*stetv1.SaveAgentStateRequest, error) {
	req := &stetv1.SaveAgentStateRequest{Id: id, State: state}
	for _, b := range blobs {
		req.Blobs = append(req.Blobs, &aiserverv1.PreFetchedBlob{Id: b.ID.Bytes(), Value: b.Data})
	}
	if proto.Size(req) <= messageBytes {
		return req, nil
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("%w: state: %w", cloudagent.ErrInvalid, err)
	}
	whole := blob.New(raw)
	if err := a.c.Blobs().Put(ctx, append(blobs[:len(blobs):len(blobs)], whole)...); err != nil {
		return nil, err
	}
	return &stetv1.SaveAgentStateRequest{Id: id, StateBlobId: whole.ID.Bytes()}, nil
}

// SetStatus sets the status of an agent and returns the offset of that event.
func (a *Agents) SetStatus(ctx context.Context, id string, status cloudagent.Status) (string, error) {
	res, err := a.c.agents.SetStatus(ctx, &stetv1.SetAgentStatusRequest{Id: id, Status: status})
	if err != nil {
		return "", agentError(ctx, err)
	}
	return res.GetOffsetKey(), nil
}

// Archive ends an agent: its log accepts no more events, and its followers end after
// the last one.
func (a *Agents) Archive(ctx context.Context, id string) error {
	_, err := a.c.agents.Archive(ctx, &stetv1.ArchiveAgentRequest{Id: id})
	return agentError(ctx, err)
}

// SetSnapshot records the image of an agent's machine. An address in it is not stored.
func (a *Agents) SetSnapshot(ctx context.Context, id string, snapshot *anyrunv1.ExternalSnapshot) error {
	_, err := a.c.agents.SetSnapshot(ctx, &stetv1.SetAgentSnapshotRequest{Id: id, Snapshot: snapshot})
	return agentError(ctx, err)
}

// Snapshot returns the image of an agent's machine with a new address, to download it
// from or, with upload, to put it to. Anyone with the address has access.
func (a *Agents) Snapshot(ctx context.Context, id string, upload bool) (*anyrunv1.ExternalSnapshot, error) {
	res, err := a.c.agents.Snapshot(ctx, &stetv1.AgentSnapshotRequest{Id: id, Upload: upload})
	if err != nil {
		return nil, agentError(ctx, err)
	}
	return res.GetSnapshot(), nil
}

// Watch yields what is known about an agent, now and whenever its metadata, its status
// or its properties change. It ends with the connection; call it again then.
func (a *Agents) Watch(ctx context.Context, id string) iter.Seq2[*stetv1.Agent, error] {
	return func(yield func(*stetv1.Agent, error) bool) {
		stream, err := a.c.agents.Watch(ctx, &stetv1.WatchAgentRequest{Id: id})
		if err != nil {
			yield(nil, agentError(ctx, err))
			return
		}
		defer stream.Close()
		for stream.Receive() {
			if !yield(stream.Msg().GetAgent(), nil) {
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(nil, agentError(ctx, err))
		}
	}
}

// FollowOptions configure Follow; nil gives the defaults.
type FollowOptions struct {
	// After is the last offset that the caller has handled; "" begins with the
	// initial state.
	After string
	// Cache stores states and their blobs. With a cache, a state is delivered only
	// when all its blobs are present; without one, states may be incomplete.
	Cache blob.Store
	// Light leaves out the contents of large tool calls and large blobs.
	Light bool
	// MinBackoff, MaxBackoff and Silence are those of cloudagent.FollowOptions.
	MinBackoff, MaxBackoff, Silence time.Duration
}

// Follow yields the events of an agent, each once and in order, over as many
// connections as needed. It ends when the agent has ended, when ctx is done, or with
// an error that a new connection cannot fix.
func (a *Agents) Follow(ctx context.Context, id string, opts *FollowOptions) iter.Seq2[cloudagent.Event, error] {
	if opts == nil {
		opts = &FollowOptions{}
	}
	follow := cloudagent.FollowOptions{
		Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			return a.dial(ctx, id, after, opts)
		},
		Cache: opts.Cache, After: opts.After, Permanent: permanent,
		MinBackoff: opts.MinBackoff, MaxBackoff: opts.MaxBackoff, Silence: opts.Silence,
	}
	follow.Fetch = func(ctx context.Context, ids []blob.ID) ([]blob.Blob, error) { return a.fetch(ctx, id, ids) }
	return cloudagent.Follow(ctx, follow)
}

// receiver is one connection to an agent's stream.
type receiver struct {
	stream *connect.ServerStreamForClient[aiserverv1.StreamConversationResponse]
	cancel context.CancelFunc
}

// errSilent means that a connection was closed because nothing arrived.
var errSilent = fault.New(fault.Unreachable, "the server did not answer in time")

// dial opens a connection. A server need not answer before it has an event, so the
// wait has the same limit as any silence.
func (a *Agents) dial(ctx context.Context, id, after string, opts *FollowOptions) (cloudagent.Receiver, error) {
	req := &aiserverv1.StreamConversationRequest{BcId: id}
	if after != "" {
		req.OffsetKey = &after
	}
	if opts.Light {
		req.FilterHeavyStepData = &opts.Light
	}
	silence := opts.Silence
	if silence <= 0 {
		silence = time.Minute
	}
	open, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(silence, cancel)
	stream, err := a.c.follow.StreamConversation(open, req)
	switch inTime := timer.Stop(); {
	case err == nil && inTime:
		return &receiver{stream: stream, cancel: cancel}, nil
	case err == nil:
		stream.Close()
		err = errSilent
	case !inTime && ctx.Err() == nil:
		err = errSilent
	default:
		err = agentError(ctx, err)
	}
	cancel()
	return nil, err
}

// Receive ends the connection when ctx ends: a stream abandoned during a silence
// cannot be read further.
func (r *receiver) Receive(ctx context.Context) (*aiserverv1.StreamConversationResponse, error) {
	defer context.AfterFunc(ctx, r.cancel)()
	if r.stream.Receive() {
		return r.stream.Msg(), nil
	}
	if err := r.stream.Err(); err != nil {
		return nil, agentError(ctx, err)
	}
	return nil, io.EOF
}

func (r *receiver) Close() error {
	r.cancel()
	return r.stream.Close()
}

// fetching is how many blobs are fetched side by side.
const fetching = 16

// fetch gets blobs of an agent and leaves out those that the server does not have or
// that are damaged there.
func (a *Agents) fetch(ctx context.Context, agent string, ids []blob.ID) ([]blob.Blob, error) {
	blobs := make([]blob.Blob, len(ids))
	errs := make([]error, len(ids))
	var work sync.WaitGroup
	slots := make(chan struct{}, fetching)
	for i, id := range ids {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			data, err := a.blob(ctx, agent, id)
			blobs[i], errs[i] = blob.Blob{ID: id, Data: data}, err
		})
	}
	work.Wait()
	got := blobs[:0]
	for i, err := range errs {
		switch {
		case err == nil:
			got = append(got, blobs[i])
		case !errors.Is(err, cloudagent.ErrNotFound) && !errors.Is(err, cloudagent.ErrDataLoss) && !errors.Is(err, blob.ErrCorrupt):
			return nil, err
		}
	}
	return got, nil
}

// blob gets one blob; one that does not fit into a message comes as a stream.
func (a *Agents) blob(ctx context.Context, agent string, id blob.ID) ([]byte, error) {
	res, err := a.c.follow.GetBlobForAgentKV(ctx, &aiserverv1.GetBlobForAgentKVRequest{BcId: agent, BlobId: id.Bytes()})
	if err == nil {
		return res.GetBlobData(), nil
	}
	if err = agentError(ctx, err); errors.Is(err, blob.ErrTooLarge) {
		return a.c.Blobs().Get(ctx, id)
	}
	return nil, err
}

// agentErrors maps codes to errors of package cloudagent.
var agentErrors = map[connect.Code]error{
	connect.CodeNotFound: cloudagent.ErrNotFound, connect.CodeAlreadyExists: cloudagent.ErrExists,
	connect.CodeInvalidArgument: cloudagent.ErrInvalid, connect.CodeDataLoss: cloudagent.ErrDataLoss,
	connect.CodeAborted: cloudagent.ErrConflict,
}

func agentError(ctx context.Context, err error) error {
	var wire *connect.Error
	if err == nil || ctx.Err() != nil || !errors.As(err, &wire) || !connect.IsWireError(err) {
		return localError(ctx, err, cloudagent.ErrNotFound)
	}
	e := remote(wire, nil)
	if kind := agentErrors[wire.Code()]; kind != nil { // besides the reason, which may be that of a blob
		e.kinds = append(e.kinds, kind)
	}
	return e
}

// permanent reports errors that a later retry does not fix.
func permanent(err error) bool {
	return slices.Contains([]connect.Code{
		connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeUnimplemented, connect.CodeFailedPrecondition,
	}, connect.CodeOf(err))
}
