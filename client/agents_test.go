package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

func text(s string) *agentv1.InteractionUpdate {
	return &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: s}}}
}

func TestAgents(t *testing.T) {
	ctx := t.Context()
	_, srv := start(t)
	agents := dial(t, srv.URL, token).Agents()
	for _, id := range []string{"a1", "a2"} {
		if made, err := agents.Create(ctx, id, "fix "+id, ""); err != nil || made.GetName() != "fix "+id {
			t.Fatalf("create %s: %v, %v", id, made, err)
		}
	}
	_, err := agents.Create(ctx, "a1", "", "")
	wantErr(t, "create it again", err, cloudagent.ErrExists)
	_, err = agents.Get(ctx, "none")
	wantErr(t, "get a missing one", err, cloudagent.ErrNotFound)

	first, err := agents.Append(ctx, "a1", "key", text("one"), text("two"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := agents.Append(ctx, "a1", "key", text("one"), text("two"))
	if err != nil || again != first {
		t.Errorf("the same append again: %s, %v, want %s", again, err, first)
	}
	if _, err := agents.SetStatus(ctx, "a1", aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_RUNNING); err != nil {
		t.Error(err)
	}
	if err := agents.Archive(ctx, "a2"); err != nil {
		t.Error(err)
	}
	var ids []string
	for a, err := range agents.List(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.GetId())
	}
	if len(ids) != 2 {
		t.Errorf("agents: %q, want two", ids)
	}
}

func TestFollowAcrossLostConnections(t *testing.T) {
	ctx := t.Context()
	_, srv := start(t)
	agents := dial(t, srv.URL, token).Agents()
	if _, err := agents.Create(ctx, "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	const events = 60
	next := make(chan struct{})
	go func() {
		defer close(next)
		writer := dial(t, srv.URL, token).Agents()
		for i := range events {
			key := fmt.Sprint("append ", i)
			for {
				_, err := writer.Append(ctx, "a1", key, text(fmt.Sprint(i)))
				if err == nil {
					break
				}
				if !errors.Is(err, client.ErrUnreachable) && connect.CodeOf(err) != connect.CodeUnavailable {
					t.Errorf("append %d: %v", i, err)
					return
				}
			}
		}
		if err := retry(func() error { return writer.Archive(ctx, "a1") }); err != nil {
			t.Error(err)
		}
	}()
	var got []string
	for e, err := range agents.Follow(ctx, "a1", &client.FollowOptions{MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Update == nil {
			continue
		}
		got = append(got, e.Update.GetTextDelta().GetText())
		if len(got)%10 == 0 {
			srv.CloseClientConnections() // the writer's, too
		}
	}
	<-next
	if len(got) != events {
		t.Fatalf("got %d events, want %d", len(got), events)
	}
	for i, s := range got {
		if s != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, s)
		}
	}
}

// retry calls fn until it is answered.
func retry(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, client.ErrUnreachable) && connect.CodeOf(err) != connect.CodeUnavailable {
			return err
		}
	}
}

func TestFollowFetchesWhatAStateRefersTo(t *testing.T) {
	ctx := t.Context()
	db, srv := start(t)
	agents := dial(t, srv.URL, token).Agents()
	if _, err := agents.Create(ctx, "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	message, err := proto.MarshalOptions{Deterministic: true}.Marshal(&agentv1.UserMessage{Text: "hello", MessageId: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	said := blob.New(message)
	turn, err := proto.MarshalOptions{Deterministic: true}.Marshal(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
		AgentConversationTurn: &agentv1.AgentConversationTurnStructure{UserMessage: said.ID.Bytes()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	turned := blob.New(turn)
	state := &aiserverv1.CloudAgentState{ConversationState: &agentv1.ConversationStateStructure{Turns: [][]byte{turned.ID.Bytes()}}}
	if err := db.Blobs().Put(ctx, said); err != nil { // known to the server, sent by nobody
		t.Fatal(err)
	}
	id, _, err := agents.SaveState(ctx, "a1", state, turned)
	if err != nil {
		t.Fatal(err)
	}
	if err := agents.Archive(ctx, "a1"); err != nil {
		t.Fatal(err)
	}
	cache := blob.Checked(memblob.New())
	seen := false
	for e, err := range agents.Follow(ctx, "a1", &client.FollowOptions{Cache: cache}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.StateID != id {
			continue
		}
		seen = true
		for _, want := range []blob.Blob{turned, said} {
			if data, err := cache.Get(ctx, want.ID); err != nil || string(data) != string(want.Data) {
				t.Errorf("blob %s in the cache: %q, %v", want.ID.Short(), data, err)
			}
		}
	}
	if !seen {
		t.Error("the state was not followed")
	}
}

func TestWatchReportsStatusAndProperties(t *testing.T) {
	ctx := t.Context()
	_, srv := start(t)
	agents := dial(t, srv.URL, token).Agents()
	if _, err := agents.Create(ctx, "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	name := blob.New([]byte("Fixer"))
	step := 0
	for agent, err := range agents.Watch(ctx, "a1") {
		if err != nil {
			t.Fatal(err)
		}
		switch step++; step {
		case 1:
			state := &aiserverv1.CloudAgentState{
				AgentName: name.ID.Bytes(), OriginalRequestStartUnixMs: proto.Int64(1700000000000), LastInteractionUpdateOffsetKey: "7",
				InitialSource:          aiserverv1.BackgroundComposerSource_BACKGROUND_COMPOSER_SOURCE_API.Enum(),
				UserFacingErrorDetails: &aiserverv1.CloudAgentErrorDetails{ErrorMessage: "no credit", ErrorCode: "402"},
			}
			if _, _, err := agents.SaveState(ctx, "a1", state, name); err != nil {
				t.Fatal(err)
			}
		case 2:
			if agent.GetAgentName() != "Fixer" || agent.GetStartedMs() != 1700000000000 || agent.GetLastInteractionOffsetKey() != "7" || agent.GetErrorMessage() != "no credit" ||
				agent.GetSource() != aiserverv1.BackgroundComposerSource_BACKGROUND_COMPOSER_SOURCE_API {
				t.Errorf("after a state: %v", agent)
			}
			if err := agents.Archive(ctx, "a1"); err != nil {
				t.Fatal(err)
			}
		case 3:
			if agent.GetStatus() != cloudagent.StatusArchived {
				t.Errorf("after archiving: %v", agent)
			}
		}
		if step == 3 {
			return
		}
	}
}

// States and blobs that do not fit into a message are saved and followed all the same.
func TestLargeStatesAndBlobs(t *testing.T) {
	ctx := t.Context()
	_, srv := start(t)
	agents := dial(t, srv.URL, token).Agents()
	if _, err := agents.Create(ctx, "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	large := blob.New(bytes.Repeat([]byte("summary "), 700<<10))
	want := &aiserverv1.CloudAgentState{StartingCommit: proto.String(strings.Repeat("x", 5<<20)), Summary: large.ID.Bytes()}
	id, _, err := agents.SaveState(ctx, "a1", want, large)
	if err != nil {
		t.Fatal(err)
	}
	if err := agents.Archive(ctx, "a1"); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []blob.Store{nil, blob.Checked(memblob.New())} {
		seen := false
		for e, err := range agents.Follow(ctx, "a1", &client.FollowOptions{Cache: cache}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.StateID != id {
				continue
			}
			if seen = true; !proto.Equal(e.State, want) || len(e.Missing) > 0 {
				t.Errorf("the state has %d bytes, %d blobs are missing", proto.Size(e.State), len(e.Missing))
			}
			if cache != nil {
				if data, err := cache.Get(ctx, large.ID); err != nil || !bytes.Equal(data, large.Data) {
					t.Errorf("the large blob has %d bytes, %v", len(data), err)
				}
			}
		}
		if !seen {
			t.Error("the state was not followed")
		}
	}
}

func TestFollowGivesUpWhatCannotBeCured(t *testing.T) {
	_, srv := start(t)
	for _, test := range []struct {
		name, token string
		check       func(error) bool
	}{
		{"no such agent", token, func(err error) bool { return errors.Is(err, cloudagent.ErrNotFound) }},
		{"a wrong token", "wrong", func(err error) bool { return connect.CodeOf(err) == connect.CodeUnauthenticated }},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, err := range dial(t, srv.URL, test.token).Agents().Follow(t.Context(), "none", nil) {
				if !test.check(err) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestFollowGivesUpASilentConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, srv := start(t)
	if _, err := dial(t, srv.URL, token).Agents().Create(ctx, "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	// Nothing ever happens to the agent, and heartbeats come too seldom for this
	// follower: every connection is given up, none is an end.
	var initial, later atomic.Int32
	handler := srv.Config.Handler
	front := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if initial.Load() > 0 && later.Add(1) == 3 {
			cancel()
		}
		handler.ServeHTTP(w, r)
	}))
	defer front.Close()
	agents := dial(t, front.URL, token).Agents()
	opts := &client.FollowOptions{Silence: 50 * time.Millisecond, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}
	for e, err := range agents.Follow(ctx, "a1", opts) {
		if errors.Is(err, context.Canceled) {
			break
		}
		if err != nil || !e.Initial {
			t.Fatalf("got %v, %v", e, err)
		}
		initial.Add(1)
	}
	if n := initial.Load(); n != 1 {
		t.Errorf("got %d initial states over many connections, want 1", n)
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
