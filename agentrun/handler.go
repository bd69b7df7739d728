package agentrun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// CheckpointHandler keeps the checkpoints of a run. Handler is the one that saves
// them.
type CheckpointHandler interface {
	// HandleCheckpoint returns once the state is saved. An error ends the run.
	HandleCheckpoint(ctx context.Context, state *agentv1.ConversationStateStructure) error
}

// Transcripts writes transcripts in the background; *transcript.Background does.
type Transcripts interface {
	// Write requests the transcript of a state and does not wait.
	Write(conversation string, root blob.ID) error
	// Wait returns once everything is written, with any errors.
	Wait(ctx context.Context) error
}

// Checkpoint is a saved state.
type Checkpoint struct {
	// State is the state as the server sent it. It belongs to the receiver.
	State *agentv1.ConversationStateStructure
	Save  conversation.Save
	// Files is the checkpoint of the workspace that was taken with the state, or
	// nil if there is no workspace or nothing was executed since the last one.
	Files *checkpoint.Result
}

// HandlerOptions configure a Handler; nil and the zero value work.
type HandlerOptions struct {
	// OnCheckpoint, if set, is called for every checkpoint, after it is saved and
	// before it becomes the latest. An error ends the run.
	OnCheckpoint func(ctx context.Context, c Checkpoint) error
	// Transcript, if set, writes the transcript of every checkpoint. Its errors do
	// not affect the run; Handler.Wait returns them.
	Transcript Transcripts
	// Workspace, if set, is captured before a turn, and with every checkpoint that
	// follows an execution.
	Workspace *checkpoint.Workspace
	// Author is recorded with saves and checkpoints.
	Author string
}

// Handler saves the checkpoints of one conversation. It is safe for concurrent
// use.
type Handler struct {
	blobs blob.Store
	conv  *conversation.Conversation
	opts  HandlerOptions
	index *messageIndex
	by    checkpoint.Holder // of the turns in the workspace

	handling sync.Mutex // held while a checkpoint is saved

	mu         sync.Mutex // guards what follows
	latest     *agentv1.ConversationStateStructure
	count      int             // checkpoints that this handler has saved
	dirty      bool            // something was executed since the last capture
	touched    map[string]bool // paths that it named
	transcript error           // why a transcript could not be requested
}

// NewHandler returns the handler of a conversation opened for writing. Its latest
// state is the conversation's current one, if any.
func NewHandler(ctx context.Context, blobs blob.Store, conv *conversation.Conversation, opts *HandlerOptions) (*Handler, error) {
	h := &Handler{blobs: blobs, conv: conv, index: newMessageIndex(blobs), touched: make(map[string]bool)}
	if opts != nil {
		h.opts = *opts
	}
	h.by.ID = rand.Text() // other runs of the conversation may be active there
	if me, ok := checkpoint.ProcessOf(os.Getpid(), "agent of "+conv.ID()); ok {
		h.by.Processes = []checkpoint.Process{me}
	}
	head := conv.Head()
	if head.Seq == 0 {
		return h, nil
	}
	raw, err := blobs.Get(ctx, head.Root)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		err = &conversation.HydrationError{Conversation: conv.ID(), Source: "pointer", Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("load latest checkpoint of %s: %w", conv.ID(), err)
	}
	h.latest = new(agentv1.ConversationStateStructure)
	if err := wirelimit.Unmarshal(raw, h.latest, stateLimits); err != nil {
		return nil, fmt.Errorf("load latest checkpoint of %s: %w", conv.ID(), err)
	}
	return h, nil
}

// Conversation returns the id of the conversation.
func (h *Handler) Conversation() string { return h.conv.ID() }

// Latest returns a copy of the latest state, or nil if there is none.
func (h *Handler) Latest() *agentv1.ConversationStateStructure {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest == nil {
		return nil
	}
	return proto.CloneOf(h.latest)
}

// Count returns how many checkpoints this handler has saved.
func (h *Handler) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// Contains reports which of the user's messages the latest state contains.
func (h *Handler) Contains(ctx context.Context, messages ...string) ([]bool, error) {
	h.mu.Lock()
	latest := h.latest // replaced as a whole, never changed
	h.mu.Unlock()
	return h.index.find(ctx, latest, messages)
}

// HandleCheckpoint implements CheckpointHandler: it makes the blobs durable, saves
// the state, captures the workspace, calls OnCheckpoint, makes the state the latest
// one, and starts writing its transcript in the background.
func (h *Handler) HandleCheckpoint(ctx context.Context, state *agentv1.ConversationStateStructure) error {
	h.handling.Lock()
	defer h.handling.Unlock()
	state = proto.CloneOf(state)
	save, err := h.save(ctx, state)
	if err != nil {
		return fmt.Errorf("handle checkpoint: %w", err)
	}
	files, err := h.captureAfter(ctx, save)
	if err != nil {
		return fmt.Errorf("handle checkpoint: %w", err)
	}
	if h.opts.OnCheckpoint != nil {
		c := Checkpoint{State: proto.CloneOf(state), Save: save, Files: files}
		if err := h.opts.OnCheckpoint(ctx, c); err != nil {
			return fmt.Errorf("report checkpoint: %w", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = state
	h.count++
	if h.opts.Transcript != nil {
		h.transcript = errors.Join(h.transcript, h.opts.Transcript.Write(h.conv.ID(), save.Root))
	}
	return nil
}

func (h *Handler) save(ctx context.Context, state *agentv1.ConversationStateStructure) (conversation.Save, error) {
	raw, err := encode(state)
	if err != nil {
		return conversation.Save{}, err
	}
	if err := h.blobs.Flush(ctx); err != nil {
		return conversation.Save{}, fmt.Errorf("flush blobs: %w", err)
	}
	message, err := h.index.last(ctx, state)
	if err != nil {
		return conversation.Save{}, err
	}
	if err := h.conv.SetStructure(ctx, raw); err != nil {
		return conversation.Save{}, err
	}
	save, err := h.conv.Save(ctx, &conversation.SaveOptions{MessageID: keyableID(message), Author: h.opts.Author})
	if err != nil {
		h.conv.Discard() // the next state must not build on a refused one
		return conversation.Save{}, err
	}
	return save, nil
}

// executed records that something ran in the workspace, and the paths it named.
func (h *Handler) executed(paths ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirty = true
	for _, p := range paths {
		h.touched[p] = true
	}
}

// captureBefore captures the workspace before a turn, so that the changes of the turn
// can be separated from earlier ones.
func (h *Handler) captureBefore(ctx context.Context, message string) error {
	if h.opts.Workspace == nil {
		return nil
	}
	head := h.conv.Head()
	_, err := h.opts.Workspace.Checkpoint(ctx, checkpoint.Request{
		Conversation: h.conv.ID(), Root: head.Root, MessageID: message, Turn: head.Turns + 1,
		Side: checkpoint.Before, Author: h.opts.Author, Auto: true, Holder: h.by,
	})
	if err != nil {
		return fmt.Errorf("capture workspace before turn %d: %w", head.Turns+1, err)
	}
	return nil
}

func (h *Handler) captureAfter(ctx context.Context, save conversation.Save) (*checkpoint.Result, error) {
	h.mu.Lock()
	dirty, touched := h.dirty, slices.Sorted(maps.Keys(h.touched))
	h.dirty = false
	h.mu.Unlock()
	if h.opts.Workspace == nil || !dirty {
		return nil, nil
	}
	res, err := h.opts.Workspace.Checkpoint(ctx, checkpoint.Request{
		Conversation: h.conv.ID(), Root: save.Root, MessageID: save.MessageID, Turn: save.Turns,
		Side: checkpoint.After, Author: h.opts.Author, Touched: touched, Auto: true, Holder: h.by,
		Unfinished: true, // more states of the turn may follow; endTurn ends it
	})
	if err != nil {
		h.executed() // the next capture must include it
		return nil, fmt.Errorf("capture workspace: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range touched {
		delete(h.touched, p)
	}
	return res, nil
}

// endTurn ends the turn: later changes in the workspace are not its work.
func (h *Handler) endTurn(ctx context.Context) error {
	if h.opts.Workspace == nil {
		return nil
	}
	err := h.opts.Workspace.Release(context.WithoutCancel(ctx), h.conv.ID(), h.by)
	if errors.Is(err, checkpoint.ErrNotFound) { // nothing was captured before it
		return nil
	}
	return err
}

// Wait returns once the transcripts of all checkpoints are written, with the errors
// since the last Wait.
func (h *Handler) Wait(ctx context.Context) error {
	if h.opts.Transcript == nil {
		return nil
	}
	err := h.opts.Transcript.Wait(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	err = errors.Join(h.transcript, err)
	h.transcript = nil
	return err
}
