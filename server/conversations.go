package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server/internal/wire"
)

// conversationService is stet.v1.ConversationService.
type conversationService struct {
	db *stet.DB

	mu      sync.Mutex // guards writers
	writers map[string]*writer
}

// writer is a conversation that is open for writing.
type writer struct {
	*conversation.Conversation
	// saving is held from setting a state until it is saved: calls of one epoch may
	// be concurrent, and each saves its own state.
	saving sync.Mutex
}

// maxWriters limits the conversations that are kept open for writing.
const maxWriters = 1024

func (s *conversationService) Create(ctx context.Context, req *stetv1.CreateConversationRequest) (*stetv1.CreateConversationResponse, error) {
	c, err := s.db.Conversations().Create(ctx, conversation.Info{
		ID: req.GetId(), Title: req.GetTitle(), Workspace: req.GetWorkspace(), Agent: req.GetAgent(), Labels: req.GetLabels(),
	})
	if err != nil {
		return nil, err
	}
	s.keep(c)
	res := &stetv1.CreateConversationResponse{Conversation: wireConversation(c.Info())}
	res.Conversation.Epoch = c.Epoch()
	return res, nil
}

func wireConversation(info conversation.Info) *stetv1.Conversation {
	c := &stetv1.Conversation{
		Id: info.ID, Title: info.Title, Workspace: info.Workspace, Agent: info.Agent, Labels: info.Labels,
		Head: info.Save, Saves: info.Save, Turns: uint32(info.Turns), Parent: info.ForkedFrom,
		CreatedMs: info.Created.UnixMilli(), UpdatedMs: info.Updated.UnixMilli(),
	}
	if !info.Root.IsZero() {
		c.Root = info.Root.Bytes()
	}
	return c
}

func (s *conversationService) keep(c *conversation.Conversation) *writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers == nil || len(s.writers) >= maxWriters {
		s.writers = make(map[string]*writer) // reopening is cheap
	}
	w := &writer{Conversation: c}
	s.writers[c.ID()] = w
	return w
}

// writer returns the conversation open for the writer of that epoch; 0 starts a new
// one. A writer can continue after a restart of this server, if no other writer
// opened the conversation meanwhile: opening then takes exactly the next epoch.
func (s *conversationService) writer(ctx context.Context, id string, epoch uint64) (*writer, error) {
	s.mu.Lock()
	w := s.writers[id]
	s.mu.Unlock()
	if w != nil && epoch != 0 && w.Epoch() == epoch {
		return w, nil
	}
	if epoch != 0 {
		// Open fences the current writer; a stale one must not do that.
		now, err := s.db.Conversations().OpenReadOnly(ctx, id)
		if err != nil {
			return nil, err
		}
		if now.Epoch() != epoch {
			return nil, fmt.Errorf("%w: epoch %d, the newest is %d", conversation.ErrStale, epoch, now.Epoch())
		}
	}
	c, err := s.db.Conversations().Open(ctx, id)
	if err != nil {
		return nil, err
	}
	if epoch != 0 && c.Epoch() != epoch+1 {
		return nil, fmt.Errorf("%w: epoch %d, the newest was %d", conversation.ErrStale, epoch, c.Epoch()-1)
	}
	return s.keep(c), nil
}

func (s *conversationService) Save(ctx context.Context, req *stetv1.SaveConversationRequest) (*stetv1.SaveConversationResponse, error) {
	c, err := s.writer(ctx, req.GetId(), req.GetEpoch())
	if err != nil {
		return nil, err
	}
	c.saving.Lock()
	defer c.saving.Unlock()
	if err := setState(ctx, c.Conversation, req); err != nil {
		c.Discard()
		return nil, err
	}
	saved, err := c.Save(ctx, &conversation.SaveOptions{MessageID: req.GetMessageId(), Author: req.GetAuthor()})
	if err != nil {
		c.Discard()
		return nil, err
	}
	return &stetv1.SaveConversationResponse{Save: wireSave(saved), Epoch: c.Epoch()}, nil
}

func setState(ctx context.Context, c *conversation.Conversation, m *stetv1.SaveConversationRequest) error {
	switch state := m.GetState().(type) {
	case *stetv1.SaveConversationRequest_Structure:
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(state.Structure)
		if err != nil {
			return err
		}
		return c.SetStructure(ctx, raw)
	case *stetv1.SaveConversationRequest_Inline:
		decoded, lost, err := conversation.FromInline(state.Inline)
		if err != nil {
			return err
		}
		if len(lost) > 0 {
			return invalid("fields that cannot be stored: %q", lost)
		}
		return c.SetState(ctx, decoded)
	case *stetv1.SaveConversationRequest_Root:
		root, err := blob.IDFromBytes(state.Root)
		if err != nil {
			return err
		}
		return c.SetRoot(ctx, root)
	}
	return missing("the state is missing")
}

func wireSave(s conversation.Save) *stetv1.Save {
	return &stetv1.Save{
		Seq: s.Seq, Parent: s.Parent, Root: s.Root.Bytes(), MessageId: s.MessageID, TimeMs: s.Time.UnixMilli(),
		Author: s.Author, Turns: uint32(s.Turns), Kind: s.Kind.String(), Label: s.Branch,
	}
}

func (s *conversationService) Get(ctx context.Context, req *stetv1.GetConversationRequest) (*stetv1.GetConversationResponse, error) {
	info, err := s.db.Conversations().Get(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	res := &stetv1.GetConversationResponse{Conversation: wireConversation(info)}
	if req.GetWithState() && !info.Root.IsZero() {
		var raw []byte
		r, err := blob.Open(ctx, s.db.Blobs(), info.Root)
		if err == nil {
			raw, err = wire.ReadMessage(r, info.Root)
		}
		if err != nil {
			return nil, lostState(info, err)
		}
		res.Structure = new(agentv1.ConversationStateStructure)
		if err := proto.Unmarshal(raw, res.Structure); err != nil {
			return nil, &conversation.HydrationError{Conversation: info.ID, Source: "pointer", Err: err}
		}
	}
	return res, nil
}

// lostState makes the loss of a conversation's current root data loss with its source.
func lostState(info conversation.Info, err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return &conversation.HydrationError{Conversation: info.ID, Source: "pointer", Err: err}
	}
	return err
}

func (s *conversationService) List(ctx context.Context, req *stetv1.ListConversationsRequest) (*stetv1.ListConversationsResponse, error) {
	return wire.Fitting(req.GetPage().GetLimit(), func(limit int) (*stetv1.ListConversationsResponse, error) {
		page, err := s.db.Conversations().List(ctx, &conversation.ListOptions{
			Cursor: req.GetPage().GetCursor(), Limit: limit,
			Workspace: req.GetWorkspace(), Agent: req.GetAgent(),
		})
		if err != nil {
			return nil, err
		}
		res := &stetv1.ListConversationsResponse{NextCursor: page.Next}
		for _, info := range page.Conversations {
			res.Conversations = append(res.Conversations, wireConversation(info))
		}
		res.Damaged = wire.Damaged(page.Damaged)
		return res, nil
	})
}

func (s *conversationService) History(ctx context.Context, req *stetv1.ConversationHistoryRequest) (*stetv1.ConversationHistoryResponse, error) {
	return wire.Fitting(uint32(wire.PageSize(req.GetPage().GetLimit())), func(limit int) (*stetv1.ConversationHistoryResponse, error) {
		opts := &conversation.HistoryOptions{Newest: true, Limit: limit + 1}
		if cursor := req.GetPage().GetCursor(); cursor != "" {
			before, err := strconv.ParseUint(cursor, 10, 64)
			if err != nil || before < 2 {
				return nil, errCursor()
			}
			opts.To = before - 1
		}
		if _, err := s.db.Conversations().Get(ctx, req.GetId()); err != nil {
			return nil, err
		}
		res := &stetv1.ConversationHistoryResponse{}
		for save, err := range s.db.Conversations().History(ctx, req.GetId(), opts) {
			if err != nil {
				return nil, err
			}
			if len(res.Saves) == limit {
				res.NextCursor = strconv.FormatUint(res.Saves[limit-1].GetSeq(), 10)
				break
			}
			res.Saves = append(res.Saves, wireSave(save))
		}
		return res, nil
	})
}

func (s *conversationService) Fork(ctx context.Context, req *stetv1.ForkConversationRequest) (*stetv1.ForkConversationResponse, error) {
	c, err := s.db.Conversations().Fork(ctx, req.GetId(), req.GetSeq(), conversation.Info{Title: req.GetTitle()})
	if err != nil {
		return nil, err
	}
	s.keep(c)
	res := &stetv1.ForkConversationResponse{Conversation: wireConversation(c.Info())}
	res.Conversation.Epoch = c.Epoch()
	return res, nil
}

func (s *conversationService) Delete(ctx context.Context, req *stetv1.DeleteConversationRequest) (*stetv1.DeleteConversationResponse, error) {
	id := req.GetId()
	err := s.db.Conversations().Delete(ctx, id, &conversation.DeleteOptions{Extend: func(b *kv.Batch) error {
		return s.db.Checkpoints().ForgetImported(ctx, id, b)
	}})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.writers, req.GetId())
	s.mu.Unlock()
	return &stetv1.DeleteConversationResponse{}, nil
}

func (s *conversationService) SetTitle(ctx context.Context, req *stetv1.SetConversationTitleRequest) (*stetv1.SetConversationTitleResponse, error) {
	if err := s.db.Conversations().SetTitle(ctx, req.GetId(), req.GetTitle()); err != nil {
		return nil, err
	}
	return &stetv1.SetConversationTitleResponse{}, nil
}
