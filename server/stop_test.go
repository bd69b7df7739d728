package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// running is a server that can be stopped and started again at its address.
type running struct {
	t       *testing.T
	dir     string
	address string
	cancel  context.CancelFunc
	ended   chan error
}

func (s *running) start() {
	s.t.Helper()
	db, err := stet.Open(s.t.Context(), s.dir, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	handler, err := server.New(db, &server.Options{Token: token})
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- errors.Join(server.Serve(ctx, listener, handler), db.Close()) }()
}

func (s *running) stop() {
	s.t.Helper()
	s.cancel()
	if err := <-s.ended; err != nil {
		s.t.Errorf("stop: %v", err)
	}
}

// receiver is a stream of a client for cloudagent.Follow, and notes how it ended
// if it had begun: while there is no server, others cannot.
type receiver struct {
	begun  bool
	stream *connect.ServerStreamForClient[aiserverv1.StreamConversationResponse]
	clean  *atomic.Int64
	dirty  *atomic.Int64
}

func (r *receiver) Receive(context.Context) (*aiserverv1.StreamConversationResponse, error) {
	if r.stream.Receive() {
		r.begun = true
		return r.stream.Msg(), nil
	}
	err := r.stream.Err()
	switch {
	case r.begun && err != nil:
		r.dirty.Add(1)
	case r.begun:
		r.clean.Add(1)
	}
	if err == nil {
		err = io.EOF
	}
	return nil, err
}

func (r *receiver) Close() error { return r.stream.Close() }

// Followers of a server that stops are told so, come back to the next one, and
// miss nothing and see nothing twice.
func TestFollowersSurviveANewServer(t *testing.T) {
	const followers, rounds, updates = 8, 3, 5
	s := &running{t: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	s.start()
	base := "http://" + s.address
	c, _ := dial(t, base, token).HTTP()
	agents := stetv1connect.NewCloudAgentServiceClient(c, base)
	call(t, agents.Create, &stetv1.CreateAgentRequest{Id: "a1"})
	follow := aiserverv1connect.NewBackgroundComposerServiceClient(c, base)

	var clean, dirty atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make([]chan string, followers)
	for i := range got {
		got[i] = make(chan string, rounds*updates+1)
		go func() {
			defer close(got[i])
			opts := cloudagent.FollowOptions{MinBackoff: 1, MaxBackoff: 1 << 20, Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
				req := &aiserverv1.StreamConversationRequest{BcId: "a1"}
				if after != "" {
					req.OffsetKey = &after
				}
				stream, err := follow.StreamConversation(ctx, req)
				if err != nil {
					return nil, err
				}
				return &receiver{stream: stream, clean: &clean, dirty: &dirty}, nil
			}}
			for e, err := range cloudagent.Follow(ctx, opts) {
				if err != nil {
					return
				}
				if word := e.Update.GetTextDelta().GetText(); word != "" {
					got[i] <- word
				}
			}
		}()
	}
	n := 0
	for round := range rounds {
		for range updates {
			n++
			call(t, agents.AppendUpdate, &stetv1.AppendUpdateRequest{Id: "a1", Updates: []*agentv1.InteractionUpdate{text(fmt.Sprint(n))}})
		}
		for i := range got { // all have everything, so that all have a stream open
			for k := n - updates + 1; k <= n; k++ {
				if word := <-got[i]; word != fmt.Sprint(k) {
					t.Fatalf("follower %d got %q, want %d", i, word, k)
				}
			}
		}
		if round == rounds-1 {
			break
		}
		s.stop()
		// One that came back at once may have been let in and told again.
		if clean.Load() < int64(followers*(round+1)) || dirty.Load() != 0 {
			t.Errorf("after stop %d: %d streams ended properly, %d otherwise", round+1, clean.Load(), dirty.Load())
		}
		s.start()
	}
	cancel()
	for i := range got {
		for word := range got[i] {
			t.Errorf("follower %d got %q once more", i, word)
		}
	}
	s.stop()
}

// A server that stops while it sends the log of an ended agent does not end that log.
func TestFollowersOfAnEndedAgentSurviveANewServer(t *testing.T) {
	const groups, updates = 64, 128
	long := strings.Repeat("many words ", 200) // more than the connection holds, all together
	s := &running{t: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	s.start()
	agents := dial(t, "http://"+s.address, token).Agents()
	if _, err := agents.Create(t.Context(), "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	for g := range groups {
		var group []*agentv1.InteractionUpdate
		for i := range updates {
			group = append(group, text(fmt.Sprint(g*updates+i, " ", long)))
		}
		if _, err := agents.Append(t.Context(), "a1", "", group...); err != nil {
			t.Fatal(err)
		}
	}
	if err := agents.Archive(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	restarted := make(chan struct{})
	next := 0
	for e, err := range agents.Follow(t.Context(), "a1", &client.FollowOptions{MinBackoff: 1, MaxBackoff: 1 << 20}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Update == nil {
			continue
		}
		if want := fmt.Sprint(next, " ", long); e.Update.GetTextDelta().GetText() != want {
			t.Fatalf("event %d is %.20q", next, e.Update.GetTextDelta().GetText())
		}
		if next++; next == 1 {
			s.cancel() // most of the log is not sent yet
			go func() {
				defer close(restarted)
				s.stop()
				s.start()
			}()
		}
	}
	if next != groups*updates {
		t.Errorf("got %d events, want %d", next, groups*updates)
	}
	<-restarted
	s.stop()
}

// A call that is under way is finished.
func TestCallsAreFinishedBeforeTheEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		if r.Context().Err() == nil {
			w.Write([]byte("done"))
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler) }()
	body := make(chan string, 1)
	go func() {
		res, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer res.Body.Close()
		data, _ := io.ReadAll(res.Body)
		body <- string(data)
	}()
	<-entered
	cancel()
	close(release)
	if got := <-body; got != "done" {
		t.Errorf("got %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
