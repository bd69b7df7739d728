package conversation

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv"
)

// maxPath is the longest path in bytes.
const maxPath = 4096

// File is a conversation's record of a file. An empty Content means that the file
// does not, or did not, exist.
type File struct {
	// Content is the file after the agent's last edit.
	Content Content
	// Initial is the file before the agent's first edit.
	Initial Content

	unknown []byte // fields of a newer release, which are kept
}

// structure returns the record in its stored form.
func (f File) structure() *agentv1.FileStateStructure {
	s := &agentv1.FileStateStructure{Content: f.Content.bytes32(), InitialContent: f.Initial.bytes32()}
	s.ProtoReflect().SetUnknown(bytes.Clone(f.unknown))
	return s
}

// SetFile records the state of a file. Fields of a newer release that the file has, or
// else the record of its path, are kept.
func (c *Conversation) SetFile(ctx context.Context, path string, f File) error {
	if path == "" || len(path) > maxPath {
		return invalid("set file: a path of %d bytes", len(path))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	if f.unknown == nil {
		old, _, err := c.fileLocked(path)
		if err != nil {
			return err
		}
		f.unknown = old.unknown
	}
	value, err := marshal(f.structure())
	if err != nil {
		return err
	}
	c.stage(f.Content)
	c.stage(f.Initial)
	c.draft.put(fieldFiles, path, entryRecord(fieldFiles, path, value))
	return nil
}

// File returns the draft's record of a file, without its bytes, and whether there is
// one.
func (c *Conversation) File(ctx context.Context, path string) (File, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ensure(ctx); err != nil {
		return File{}, false, err
	}
	return c.fileLocked(path)
}

func (c *Conversation) fileLocked(path string) (File, bool, error) {
	raw, ok := c.draft.entries[fieldFiles][path]
	if !ok {
		return File{}, false, nil
	}
	var s agentv1.ConversationStateStructure
	if err := wirelimit.Unmarshal(raw, &s, nil); err != nil {
		return File{}, false, err
	}
	f, err := fileOf(s.FileStatesV2[path])
	return f, err == nil, err
}

func fileOf(s *agentv1.FileStateStructure) (File, error) {
	content, err := contentRef(s.GetContent())
	if err != nil {
		return File{}, err
	}
	initial, err := contentRef(s.GetInitialContent())
	return File{Content: content, Initial: initial, unknown: s.ProtoReflect().GetUnknown()}, err
}

// contentRef reads a field that names a blob.
func contentRef(id []byte) (Content, error) {
	if len(id) == 0 {
		return Content{}, nil
	}
	parsed, err := blob.IDFromBytes(id)
	return Content{id: parsed}, err
}

// RemoveFile removes a file from the conversation. The next root is written as a
// whole.
func (c *Conversation) RemoveFile(ctx context.Context, path string) error {
	return c.removeEntry(ctx, fieldFiles, path)
}

// SetSubagent records the state of a subagent, by the id of its root, which must
// be stored.
func (c *Conversation) SetSubagent(ctx context.Context, subagent string, root blob.ID) error {
	if err := checkID("subagent", subagent); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	c.draft.put(fieldSubagents, subagent, entryRecord(fieldSubagents, subagent, root.Bytes()))
	return nil
}

// RemoveSubagent removes a subagent that SetSubagent recorded. The next root is
// written as a whole.
func (c *Conversation) RemoveSubagent(ctx context.Context, subagent string) error {
	return c.removeEntry(ctx, fieldSubagents, subagent)
}

func (c *Conversation) removeEntry(ctx context.Context, num protowire.Number, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	c.draft.remove(num, key)
	return nil
}

// Update changes small fields, such as the mode, the token details, the pending tool
// calls and the names of branches. change gets a structure with only those fields,
// without lists of turns and messages and without maps; Update fails if it fills the
// latter.
func (c *Conversation) Update(ctx context.Context, change func(*agentv1.ConversationStateStructure) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.edit(ctx); err != nil {
		return err
	}
	var raw []byte
	for _, records := range c.draft.tail {
		raw = append(raw, records...)
	}
	s := new(agentv1.ConversationStateStructure)
	if err := wirelimit.Unmarshal(raw, s, rootLimits); err != nil {
		return err
	}
	if err := change(s); err != nil {
		return err
	}
	raw, err := marshal(s)
	if err != nil {
		return err
	}
	records, err := splitRoot(raw)
	if err != nil {
		return err
	}
	g := group(records)
	for num := range g {
		if layoutOf(num) != inTail {
			return invalid("update: field %d is not a small field", num)
		}
	}
	for num := range c.draft.tail {
		c.draft.set(num, g.joined(num))
	}
	for num := range g {
		c.draft.set(num, g.joined(num))
	}
	return nil
}

// SetStructure makes a state in its stored form the draft. The blobs it names must be
// stored when it is saved. Its fields are reordered; SetRoot keeps the exact bytes.
func (c *Conversation) SetStructure(ctx context.Context, raw []byte) error {
	if err := parseRoot(raw); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.editWhole(ctx); err != nil {
		return err
	}
	return c.replace(raw)
}

// SetRoot makes a stored root the draft, so that a save without further changes
// keeps exactly that root. The error is a *kv.MissingBlobsError if the root is missing.
func (c *Conversation) SetRoot(ctx context.Context, root blob.ID) error {
	raw, err := c.store.blobs.Get(ctx, root)
	if errors.Is(err, blob.ErrNotFound) { // the caller names it; nothing that was stored is lost
		return fmt.Errorf("set root of %s: %w", c.id, &kv.MissingBlobsError{IDs: []blob.ID{root}})
	}
	if err != nil {
		return c.store.lost(c.id, "root", err)
	}
	if err := parseRoot(raw); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.editWhole(ctx); err != nil {
		return err
	}
	if err := c.replace(raw); err != nil {
		return err
	}
	c.exact = root
	return nil
}

func (c *Conversation) replace(raw []byte) error {
	records, err := splitRoot(raw)
	if err != nil {
		return err
	}
	c.sealTurn()
	d, err := c.draft.replace(c.head.Root, records)
	if err != nil {
		return err
	}
	c.draft, c.turn = d, nil
	return nil
}
