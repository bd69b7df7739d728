package server

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
)

// followService is aiserver.v1.BackgroundComposerService, which followers of
// cloud agents use.
type followService struct{ db *stet.DB }

func (s *followService) StreamConversation(ctx context.Context, req *aiserverv1.StreamConversationRequest, stream *connect.ServerStream[aiserverv1.StreamConversationResponse]) error {
	opts, err := cloudagent.OptionsFor(req)
	if err != nil {
		return err
	}
	// Send headers at once: otherwise a follower without new events would learn only
	// at the next heartbeat that it is connected.
	if err := stream.Send(nil); err != nil {
		return err
	}
	for message, err := range s.db.Agents().Messages(ctx, req.GetBcId(), opts) {
		if err != nil {
			return err
		}
		// Not by Send, which takes no message that has its encoding.
		if err := stream.Conn().Send(message); err != nil {
			return err
		}
	}
	return nil
}

func (s *followService) GetLatestAgentConversationState(ctx context.Context, req *aiserverv1.GetLatestAgentConversationStateRequest) (*aiserverv1.GetLatestAgentConversationStateResponse, error) {
	res, err := s.db.Agents().GetLatestState(ctx, req.GetBcId())
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (s *followService) GetBlobForAgentKV(ctx context.Context, req *aiserverv1.GetBlobForAgentKVRequest) (*aiserverv1.GetBlobForAgentKVResponse, error) {
	id, err := blob.IDFromBytes(req.GetBlobId())
	if err != nil {
		return nil, err
	}
	r, err := s.db.Agents().OpenBlob(ctx, req.GetBcId(), id)
	if err != nil {
		return nil, err
	}
	data, err := wire.ReadMessage(r, id)
	if err != nil {
		return nil, err
	}
	return &aiserverv1.GetBlobForAgentKVResponse{BlobData: data}, nil
}

// agentService is stet.v1.CloudAgentService, for clients that run agents.
type agentService struct{ db *stet.DB }

func wireAgent(a cloudagent.Agent) *stetv1.Agent {
	out := &stetv1.Agent{
		Id: a.ID, Name: a.Name, Conversation: a.Conversation, Status: a.Status, OffsetKey: a.Head.String(),
		CreatedMs: a.Created.UnixMilli(), UpdatedMs: a.Updated.UnixMilli(),
		Turns: uint32(a.Properties.NumTurns), Branch: a.Properties.BranchName, PrUrl: a.Properties.PRURL, BaseBranch: a.Properties.BaseBranch,
		AgentName: a.Properties.AgentName, Source: a.Properties.InitialSource, LastInteractionOffsetKey: a.Properties.LastInteraction,
		ErrorMessage: a.Properties.ErrorMessage, ErrorCode: a.Properties.ErrorCode, StateOffsetKey: a.StateAt.String(),
	}
	out.Origin = a.Origin.Address
	if start := a.Properties.OriginalRequestStart; !start.IsZero() {
		out.StartedMs = start.UnixMilli()
	}
	if !a.State.IsZero() {
		out.State = a.State.Bytes()
	}
	return out
}

func (s *agentService) Create(ctx context.Context, req *stetv1.CreateAgentRequest) (*stetv1.CreateAgentResponse, error) {
	a, err := s.db.Agents().Create(ctx, cloudagent.Spec{ID: req.GetId(), Name: req.GetName(), Conversation: req.GetConversation()})
	if err != nil {
		return nil, err
	}
	return &stetv1.CreateAgentResponse{Agent: wireAgent(a)}, nil
}

func (s *agentService) Get(ctx context.Context, req *stetv1.GetAgentRequest) (*stetv1.GetAgentResponse, error) {
	a, err := s.db.Agents().Get(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	return &stetv1.GetAgentResponse{Agent: wireAgent(a)}, nil
}

func (s *agentService) List(ctx context.Context, req *stetv1.ListAgentsRequest) (*stetv1.ListAgentsResponse, error) {
	return wire.Fitting(req.GetPage().GetLimit(), func(limit int) (*stetv1.ListAgentsResponse, error) {
		page := cloudagent.Page{After: req.GetPage().GetCursor(), Limit: limit}
		listed, err := s.db.Agents().List(ctx, page)
		if err != nil {
			return nil, err
		}
		res := &stetv1.ListAgentsResponse{NextCursor: listed.Next}
		for _, a := range listed.Agents {
			res.Agents = append(res.Agents, wireAgent(a))
		}
		for _, bad := range listed.Damaged {
			res.Damaged = append(res.Damaged, &stetv1.Unreadable{Id: wire.Valid(bad.ID), Detail: wire.Valid(bad.Err.Error())})
		}
		return res, nil
	})
}

func (s *agentService) AppendUpdate(ctx context.Context, req *stetv1.AppendUpdateRequest) (*stetv1.AppendUpdateResponse, error) {
	offset, err := s.db.Agents().AppendUpdate(ctx, req.GetId(), &cloudagent.AppendOptions{Key: req.GetIdempotencyKey()}, req.GetUpdates()...)
	if err != nil {
		return nil, err
	}
	return &stetv1.AppendUpdateResponse{OffsetKey: offset.String()}, nil
}

func (s *agentService) SaveState(ctx context.Context, req *stetv1.SaveAgentStateRequest) (*stetv1.SaveAgentStateResponse, error) {
	saved, err := s.saveState(ctx, req)
	if err != nil {
		return nil, err
	}
	return &stetv1.SaveAgentStateResponse{BlobId: saved.State.Bytes(), OffsetKey: saved.Offset.String()}, nil
}

func (s *agentService) saveState(ctx context.Context, req *stetv1.SaveAgentStateRequest) (cloudagent.Saved, error) {
	if len(req.GetStateBlobId()) == 0 {
		return s.db.Agents().SaveState(ctx, req.GetId(), req.GetState(), req.GetBlobs(), nil)
	}
	if req.GetState() != nil {
		return cloudagent.Saved{}, fmt.Errorf("%w: give either the state or its blob", cloudagent.ErrInvalid)
	}
	id, err := blob.IDFromBytes(req.GetStateBlobId())
	if err != nil {
		return cloudagent.Saved{}, err
	}
	return s.db.Agents().SaveStateBlob(ctx, req.GetId(), id, req.GetBlobs(), nil)
}

func (s *agentService) SetStatus(ctx context.Context, req *stetv1.SetAgentStatusRequest) (*stetv1.SetAgentStatusResponse, error) {
	offset, err := s.db.Agents().SetStatus(ctx, req.GetId(), req.GetStatus(), nil)
	if err != nil {
		return nil, err
	}
	return &stetv1.SetAgentStatusResponse{OffsetKey: offset.String()}, nil
}

func (s *agentService) Archive(ctx context.Context, req *stetv1.ArchiveAgentRequest) (*stetv1.ArchiveAgentResponse, error) {
	if err := s.db.Agents().Archive(ctx, req.GetId()); err != nil {
		return nil, err
	}
	return &stetv1.ArchiveAgentResponse{}, nil
}

func (s *agentService) Watch(ctx context.Context, req *stetv1.WatchAgentRequest, stream *connect.ServerStream[stetv1.WatchAgentResponse]) error {
	for agent, err := range s.db.Agents().Subscribe(ctx, req.GetId()) {
		if err != nil {
			return err
		}
		if err := stream.Send(&stetv1.WatchAgentResponse{Agent: wireAgent(agent)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *agentService) SetSnapshot(ctx context.Context, req *stetv1.SetAgentSnapshotRequest) (*stetv1.SetAgentSnapshotResponse, error) {
	if err := s.db.Agents().SetSnapshot(ctx, req.GetId(), req.GetSnapshot()); err != nil {
		return nil, err
	}
	return &stetv1.SetAgentSnapshotResponse{}, nil
}

func (s *agentService) Snapshot(ctx context.Context, req *stetv1.AgentSnapshotRequest) (*stetv1.AgentSnapshotResponse, error) {
	snapshot, err := s.db.Agents().Snapshot(ctx, req.GetId(), req.GetUpload())
	if err != nil {
		return nil, err
	}
	return &stetv1.AgentSnapshotResponse{Snapshot: snapshot}, nil
}
