package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
)

// newestVersion is the newest known version of a conversation row.
const newestVersion = 16

// Conversation is a conversation of a store without its messages, which Messages
// reads.
type Conversation struct {
	Header
	// Version is the row's migration version.
	Version int
	// Mode is its last mode, such as "agent".
	Mode string
	// Agentic means that the newer agent loop wrote it (isNAL).
	Agentic bool
	// Order is the order of the messages.
	Order []MessageRef
	// LatestCheckpoint is the id of the newest workspace checkpoint, or "".
	LatestCheckpoint string
	// Children are the conversations of its subagents.
	Children []string
	// Originals are the first known contents of files, by URI; checkpoints refer to
	// them.
	Originals map[string]Original
	// State is the latest state, or nil if it is missing or lost.
	State *State
	// StateErr is a DataLossError if a source of the state could not be read. State
	// is then from another source, or nil.
	StateErr error
	// Alternates are states from other sources that differ from State.
	Alternates []*State
	// Problems are decoding errors besides StateErr.
	Problems []error
	// Raw is the stored row, or nil.
	Raw json.RawMessage

	// inline holds the messages and checkpoints inside old rows.
	inline            map[string]Document
	inlineCheckpoints map[string]json.RawMessage
}

// WorkspacePath returns the directory that the conversation worked in, if it is
// known, else the editor's name of the workspace.
func (c *Conversation) WorkspacePath() string {
	var uri jsoncheckpoint.URI
	if doc, err := ParseDocument(c.Raw); err == nil {
		_ = json.Unmarshal(doc.Object("workspaceIdentifier")["uri"], &uri) // most rows have none
	}
	if uri.String() == "" {
		_ = json.Unmarshal(encode(c.Workspace), &uri)
	}
	if path, ok := uri.Path(); ok {
		return path
	}
	return c.Workspace
}

// MessageRef is an entry of a conversation's order.
type MessageRef struct {
	ID   string
	Role Role
}

// Original is the first known content of a file.
type Original struct {
	// Content is the text; it is valid only if Known is set.
	Content string
	// Known means that the content was found.
	Known bool
	// NewlyCreated means that the conversation created the file.
	NewlyCreated bool
	// FirstEdit is the message that first changed the file, or "".
	FirstEdit string
}

// All yields every conversation of the store, one at a time. An unreadable one has
// only its header and the reason in Problems; the sequence continues.
func (s *Store) All(ctx context.Context) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		for h, err := range s.Conversations(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			conv, err := s.Conversation(ctx, h.ID)
			if err != nil {
				if ctx.Err() != nil {
					yield(nil, ctx.Err())
					return
				}
				conv = &Conversation{Header: h, Problems: []error{err}}
			}
			if !yield(conv, nil) {
				return
			}
		}
	}
}

// Conversation reads one conversation. If the store has none with that id, the error
// wraps ErrNotFound; if its row is not JSON, ErrMalformed.
func (s *Store) Conversation(ctx context.Context, id string) (*Conversation, error) {
	switch s.kind {
	case KindAgent:
		return s.agentConversation(ctx, id)
	case KindSDK:
		return s.sdkConversation(ctx, id)
	case KindLines:
		return s.lineConversation(ctx, id)
	}
	v, err := s.Value(ctx, ConversationPrefix+id)
	if errors.Is(err, ErrNotFound) {
		if conv, found, bareErr := s.bareConversation(ctx, id); found || bareErr != nil {
			return conv, bareErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", id, err)
	}
	conv, doc, err := decodeConversation(id, v.Data)
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", id, err)
	}
	if err := s.fillHeader(ctx, conv); err != nil {
		return nil, err
	}
	if err := s.hydrate(ctx, conv, doc["conversationState"]); err != nil {
		return nil, err
	}
	return conv, s.fillOriginals(ctx, conv)
}

// bareConversation reads a conversation that has a pointer to a state and no row.
func (s *Store) bareConversation(ctx context.Context, id string) (*Conversation, bool, error) {
	pointed, err := s.present(ctx, HeadPrefix+id)
	if err != nil || !pointed {
		return nil, false, err
	}
	if deleted, err := s.exists(ctx, ConversationPrefix+id); err != nil || deleted {
		return nil, false, err
	}
	conv := &Conversation{Header: Header{ID: id}, Agentic: true}
	if err := s.fillHeader(ctx, conv); err != nil {
		return nil, false, err
	}
	return conv, true, s.hydrate(ctx, conv, nil)
}

// decodeConversation reads a conversation row, without what is in other rows.
func decodeConversation(id string, data []byte) (*Conversation, Document, error) {
	doc, err := ParseDocument(data)
	if err != nil {
		return nil, nil, err
	}
	conv := &Conversation{Header: decodeHeader(id, doc), Raw: data, Version: doc.Integer("_v")}
	if got := doc.Text("composerId"); got != "" && got != id {
		conv.Problems = append(conv.Problems, fmt.Errorf("%w: row of %s has the id %s", ErrMalformed, id, got))
	}
	if conv.Version > newestVersion {
		conv.Problems = append(conv.Problems, fmt.Errorf("%w: %d, known up to %d", ErrNewerVersion, conv.Version, newestVersion))
	}
	doc, conv.inlineCheckpoints = MigrateV1(doc)
	conv.Mode = doc.anyText("unifiedMode")
	conv.Agentic = doc.Flag("isNAL")
	conv.LatestCheckpoint = doc.Text("latestCheckpointId")
	conv.Children = doc.texts("subComposerIds")
	conv.decodeOrder(doc)
	conv.decodeOriginals(doc)
	return conv, doc, nil
}

// decodeOrder reads the order of the messages: ids only in newer rows, the
// messages themselves in older ones.
func (c *Conversation) decodeOrder(doc Document) {
	for i, item := range doc.list("fullConversationHeadersOnly") {
		d, err := ParseDocument(item)
		if err != nil || d.Text("bubbleId") == "" {
			c.Problems = append(c.Problems, fmt.Errorf("%w: entry %d of the order has no message id", ErrMalformed, i))
			continue
		}
		c.Order = append(c.Order, MessageRef{d.Text("bubbleId"), roleOf(d)})
	}
	if len(c.Order) > 0 {
		return
	}
	for i, item := range doc.list("conversation") {
		d, err := ParseDocument(item)
		if err != nil {
			c.Problems = append(c.Problems, fmt.Errorf("%w: message %d", ErrMalformed, i))
			continue
		}
		ref := MessageRef{d.Text("bubbleId"), roleOf(d)}
		if ref.ID == "" {
			ref.ID = fmt.Sprintf("%s-%d", c.ID, i)
		}
		if c.inline == nil {
			c.inline = map[string]Document{}
		}
		c.inline[ref.ID] = d
		c.Order = append(c.Order, ref)
	}
}

func (c *Conversation) decodeOriginals(doc Document) {
	states := doc.Object("originalFileStates")
	if len(states) == 0 {
		return
	}
	c.Originals = make(map[string]Original, len(states))
	for uri := range states {
		d := states.Object(uri)
		var content *string
		if json.Unmarshal(d["content"], &content) != nil {
			content = nil
		}
		o := Original{NewlyCreated: d.Flag("isNewlyCreated"), FirstEdit: d.Text("firstEditBubbleId")}
		if content != nil {
			o.Content, o.Known = *content, true
		}
		c.Originals[uri] = o
	}
}

// fillOriginals looks up contents that are in separate rows.
func (s *Store) fillOriginals(ctx context.Context, c *Conversation) error {
	for uri, o := range c.Originals {
		if o.Known {
			continue
		}
		v, err := s.value(ctx, OriginalPrefix+c.ID+":"+uri)
		if err != nil && OfRow(err) {
			c.Problems = append(c.Problems, fmt.Errorf("read original of %s: %w", uri, err))
			continue
		}
		if err != nil {
			return err
		}
		if !v.Absent() {
			o.Content, o.Known = string(v.Data), true
			c.Originals[uri] = o
		}
	}
	return nil
}

// Head returns the pointer to the latest state of a conversation, or the zero ID if
// there is none.
func (s *Store) Head(ctx context.Context, conversation string) (blob.ID, error) {
	return s.pointer(ctx, HeadPrefix+conversation)
}

// MessageHead returns the pointer to the state at a message, or the zero ID.
func (s *Store) MessageHead(ctx context.Context, conversation, message string) (blob.ID, error) {
	return s.pointer(ctx, MessageHeadPrefix+conversation+":"+message)
}

func (s *Store) pointer(ctx context.Context, key string) (blob.ID, error) {
	v, err := s.value(ctx, key)
	if err != nil || v.Absent() {
		return blob.ID{}, err
	}
	id, err := parsePointer(v)
	if err != nil {
		return blob.ID{}, &DataLossError{Source: key, Err: err}
	}
	return id, nil
}
