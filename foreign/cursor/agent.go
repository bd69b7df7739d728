package cursor

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
)

// AgentMeta is the metadata of the agent of a store.db.
type AgentMeta struct {
	AgentID, Name, Mode string
	Created             time.Time
	// LatestRoot is the id of the latest state, or zero.
	LatestRoot blob.ID
	// Key is the key string that encrypts the agent's blobs when they leave the
	// machine.
	Key Secret
	// Problem is set if the latest root is present but is not an id.
	Problem error
}

// Agent reads the metadata of a store of kind KindAgent.
func (s *Store) Agent(ctx context.Context) (AgentMeta, error) {
	if s.kind != KindAgent {
		return AgentMeta{}, fmt.Errorf("%w: a store of kind %s has no single agent", ErrUnsupported, s.kind)
	}
	return readAgentMeta(ctx, s.main)
}

// readAgentMeta reads row '0' of the table meta: hex of a JSON object. Errors do not
// quote it, because it holds a key.
func readAgentMeta(ctx context.Context, db *database) (AgentMeta, error) {
	v, err := db.get(ctx, metaTable, "0")
	if err != nil {
		return AgentMeta{}, err
	}
	if v.Absent() {
		return AgentMeta{}, fmt.Errorf("read agent of %s: %w", db.path, ErrNotFound)
	}
	meta, ok := decodeAgentMeta(v.Data)
	if !ok {
		return AgentMeta{}, fmt.Errorf("read agent of %s: %w", db.path, ErrMalformed)
	}
	return meta, nil
}

func decodeAgentMeta(value []byte) (AgentMeta, bool) {
	data := make([]byte, hex.DecodedLen(len(value)))
	if _, err := hex.Decode(data, value); err != nil {
		data = value // older releases
	}
	doc, err := ParseDocument(data)
	if err != nil {
		return AgentMeta{}, false
	}
	meta := AgentMeta{
		AgentID: doc.Text("agentId"), Name: doc.Text("name"), Mode: doc.Text("mode"),
		Created: doc.time("createdAt"), Key: Secret{doc.Text("blobEncryptionKey")},
	}
	if root := doc.Text("latestRootBlobId"); root != "" {
		if meta.LatestRoot, err = blob.ParseID(root); err != nil {
			meta.Problem = &DataLossError{Source: "latestRootBlobId", Err: err}
		}
	}
	return meta, true
}

func (s *Store) agentHeaders(ctx context.Context) iter.Seq2[Header, error] {
	return func(yield func(Header, error) bool) {
		meta, err := s.Agent(ctx)
		yield(meta.header(), err)
	}
}

func (m AgentMeta) header() Header {
	return Header{ID: m.AgentID, Title: m.Name, Created: m.Created, Updated: m.Created}
}

func (s *Store) agentConversation(ctx context.Context, id string) (*Conversation, error) {
	meta, err := s.Agent(ctx)
	if err != nil {
		return nil, err
	}
	if meta.AgentID != id {
		return nil, fmt.Errorf("read conversation %s: %w", id, ErrNotFound)
	}
	conv := &Conversation{Header: meta.header(), Mode: meta.Mode, Agentic: true, StateErr: meta.Problem}
	return conv, hydrateRoot(ctx, conv, s.Blobs(), meta.LatestRoot, "latestRootBlobId")
}

// hydrateRoot reads the state of a conversation from a blob.
func hydrateRoot(ctx context.Context, c *Conversation, blobs blob.Store, root blob.ID, source string) error {
	if root.IsZero() {
		return nil
	}
	data, err := blobs.Get(ctx, root)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = checkState(data)
	}
	if err != nil {
		c.StateErr = &DataLossError{Source: source, Err: err}
		return nil
	}
	c.State = &State{ID: root, Data: data, Source: source}
	return nil
}
