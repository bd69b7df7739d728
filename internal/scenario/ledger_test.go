//go:build unix

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// TestLedger attacks three nodes for a minute, or for ten in the long run. A ledger beside
// them knows what was acknowledged: in the end the store has all of it, once, in its
// order, and every follower has seen the same. How much is done in that time depends on
// the machine; the verdict does not.
func TestLedger(t *testing.T) {
	testenv.OnlyFull(t)
	versions := realservers.PostgresVersions()
	if !testenv.Long() {
		versions = versions[len(versions)-1:]
	}
	for _, version := range versions {
		t.Run(fmt.Sprint("postgres ", version), func(t *testing.T) {
			attack(t, version, time.Duration(testenv.Sizes(10, 60, 600))*time.Second)
		})
	}
}

const ledgerWriters = 4

func attack(t *testing.T, version int, long time.Duration) {
	server := realservers.Postgres(t, realservers.PostgresOptions{Version: version, Fsync: true, Own: true})
	if err := server.Exec("postgres", "CREATE DATABASE fleet"); err != nil {
		t.Fatal(err)
	}
	database := newCutter(t, server.Addr())
	s := newSite(t, fmt.Sprintf("postgres://stet@%s/fleet?sslmode=disable", database.address()), realservers.OwnS3(t))
	all := s.startNodes(t, 3)
	balancer := newBalancer(t, all)
	ctx, cancel := context.WithTimeout(t.Context(), long+15*time.Minute) // only if something hangs
	defer cancel()
	l := &ledger{stop: make(chan struct{}), agents: make([]int, ledgerWriters), talks: make([]int, ledgerWriters)}
	fail := func(err error) {
		if err != nil {
			t.Error(err)
			cancel()
		}
	}
	var writers, followers sync.WaitGroup
	seen := make([]int, 2*ledgerWriters)
	for n := range ledgerWriters {
		c := balancer.client(t)
		id := agentOf(n)
		fail(insistOn(ctx, func() error {
			_, err := c.Agents().Create(ctx, id, "", "")
			if errors.Is(err, cloudagent.ErrExists) {
				err = nil // made by a call whose answer was lost
			}
			return err
		}))
		writers.Go(func() { fail(l.append(ctx, c.Agents(), n)) })
		writers.Go(func() { fail(l.save(ctx, balancer.client(t), n)) })
		for k := range 2 {
			reader := balancer.client(t).Agents()
			followers.Go(func() {
				var err error
				seen[2*n+k], err = followToTheEnd(ctx, reader, id)
				fail(err)
			})
		}
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	collected := collectMeanwhile(t, ctx, all, done)
	some := func(n int64) { // until something was acknowledged, or for a while
		before := l.steps.Load()
		for range 100 {
			if l.steps.Load() >= before+n || ctx.Err() != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	attacks := []func(i int){
		func(i int) { all.replace(t, i%3) },
		func(i int) { n := all.at(i % 3); n.freeze(t); some(40); n.thaw(t) },
		func(int) { database.cut() },
		func(int) { // while nodes look whether what was cut before has happened
			for range 10 {
				database.cut()
				time.Sleep(50 * time.Millisecond)
			}
		},
		func(int) { balancer.cut() },
		func(int) { s.s3.Kill(t); some(20); s.s3.Restart(t) },
		func(int) { server.Kill(t); server.Start(t) },
		func(i int) { n := all.at(i % 3); n.freeze(t); database.cut(); some(20); n.thaw(t) },
		func(i int) { n := all.at(i % 3); n.freeze(t); some(20); all.replace(t, i%3) },
	}
	made := 0
	for end := time.Now().Add(long); ctx.Err() == nil && (time.Now().Before(end) || made < len(attacks)); made++ {
		some(60)
		attacks[made%len(attacks)](made)
	}
	close(l.stop)
	<-done
	for n := range ledgerWriters {
		c := balancer.client(t)
		fail(insistOn(ctx, func() error { return c.Agents().Archive(ctx, agentOf(n)) }))
	}
	followers.Wait()
	t.Logf("%d attacks, %d collections, %d acknowledged writes", made, <-collected, l.steps.Load())
	if t.Failed() {
		return
	}
	l.compare(t, s, seen)
}

func agentOf(n int) string { return fmt.Sprint("agent-", n) }
func talkOf(n int) string  { return fmt.Sprint("talk-", n) }

// ledger is what was acknowledged, kept outside of all that is attacked.
type ledger struct {
	stop   chan struct{}
	steps  atomic.Int64
	agents []int // events of each agent, which are the numbers from 0
	talks  []int // turns of each conversation, which are the messages from 0
}

func (l *ledger) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// append adds events to an agent, each again until it is acknowledged. The key of an
// append makes a repetition harmless.
func (l *ledger) append(ctx context.Context, agents *client.Agents, n int) error {
	for ; !l.stopped(); l.agents[n]++ {
		next := l.agents[n]
		err := insistOn(ctx, func() error {
			_, err := agents.Append(ctx, agentOf(n), fmt.Sprint("from ", next), text(strconv.Itoa(next)))
			return err
		})
		if err != nil {
			return fmt.Errorf("append %d to %s: %w", next, agentOf(n), err)
		}
		l.steps.Add(1)
	}
	return nil
}

// save saves a conversation turn by turn. After a lost answer it reads how far the store
// is: at most the one turn that was not answered may be there beside the acknowledged.
func (l *ledger) save(ctx context.Context, c *client.Client, n int) error {
	store := conversation.New(blob.Checked(c.Blobs()), c.Rows(), nil)
	for !l.stopped() {
		err := insistOn(ctx, func() error {
			talk, err := store.Open(ctx, talkOf(n))
			if errors.Is(err, conversation.ErrNotFound) && l.talks[n] == 0 {
				talk, err = store.Create(ctx, conversation.Info{ID: talkOf(n)})
			}
			if errors.Is(err, conversation.ErrExists) { // made by a call whose answer was lost
				return fmt.Errorf("%w: %w", client.ErrUnreachable, err)
			}
			if err != nil {
				return err
			}
			have, err := talk.Turns(ctx)
			if err == nil && have != l.talks[n] && have != l.talks[n]+1 {
				return fmt.Errorf("%d turns of %s were acknowledged, %d are there", l.talks[n], talkOf(n), have)
			}
			for l.talks[n] = max(l.talks[n], have); err == nil && !l.stopped(); {
				if err = saveNumbered(ctx, talk, l.talks[n]); err == nil {
					l.talks[n]++
					l.steps.Add(1)
				}
			}
			return err
		})
		if errors.Is(err, conversation.ErrStale) || errors.Is(err, kv.ErrConflict) || errors.Is(err, blob.ErrNotFound) {
			continue // a lost answer, or a collector that was faster than an unnamed blob
		}
		if err != nil {
			return fmt.Errorf("save %s: %w", talkOf(n), err)
		}
	}
	return nil
}

func messageOf(turn int) string { return fmt.Sprint("message-", turn) }

func saveNumbered(ctx context.Context, talk *conversation.Conversation, number int) error {
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("turn ", number), MessageId: messageOf(number)})
	if err == nil {
		err = talk.AppendTurn(ctx, turn)
	}
	if err == nil {
		_, err = talk.Save(ctx, &conversation.SaveOptions{MessageID: messageOf(number)})
	}
	return err
}

// followToTheEnd follows an agent until it is archived, and counts its events, which must
// be the numbers from 0 without a gap.
func followToTheEnd(ctx context.Context, agents *client.Agents, id string) (want int, _ error) {
	opts := &client.FollowOptions{MinBackoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond, Silence: 20 * time.Second}
	initial := 0
	for e, err := range agents.Follow(ctx, id, opts) {
		if err != nil {
			return want, fmt.Errorf("follow %s, after %d events: %w", id, want, err)
		}
		if e.Initial {
			initial++
		}
		if e.Update == nil {
			continue
		}
		if got := e.Update.GetTextDelta().GetText(); got != strconv.Itoa(want) {
			return want, fmt.Errorf("event %d of %s is %q", want, id, got)
		}
		want++
	}
	if initial != 1 {
		return want, fmt.Errorf("%s began %d times", id, initial)
	}
	return want, nil
}

// compare holds the store to the ledger.
func (l *ledger) compare(t *testing.T, s *site, seen []int) {
	t.Helper()
	for i, n := range seen {
		if n != l.agents[i/2] {
			t.Errorf("follower %d of %s has seen %d events, %d were acknowledged", i%2, agentOf(i/2), n, l.agents[i/2])
		}
	}
	db := s.shop(t)
	for n, turns := range l.talks {
		saves := make(map[uint64]conversation.Save)
		for save, err := range db.Conversations().History(t.Context(), talkOf(n), nil) {
			if err != nil {
				t.Fatal(err)
			}
			saves[save.Seq] = save
		}
		if len(saves) != turns && len(saves) != turns+1 { // one may have had no answer
			t.Errorf("%s has %d saves, %d were acknowledged", talkOf(n), len(saves), turns)
		}
		for seq := range uint64(len(saves)) {
			save := saves[seq+1]
			if save.Turns != seq+1 || save.MessageID != messageOf(int(seq)) || save.Parent != seq {
				t.Errorf("save %d of %s is %+v", seq+1, talkOf(n), save)
			}
		}
	}
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
}

// at returns a node.
func (n *nodes) at(i int) *node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[i]
}

// freeze stops a process where it is; thaw lets it go on as if nothing had been.
func (n *node) freeze(t testing.TB) { n.signal(t, syscall.SIGSTOP) }
func (n *node) thaw(t testing.TB)   { n.signal(t, syscall.SIGCONT) }

func (n *node) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// cutter passes connections on to a server until they are cut.
type cutter struct {
	listener net.Listener
	target   func() string

	mu    sync.Mutex // guards conns
	conns map[net.Conn]struct{}
}

func newCutter(t testing.TB, target string) *cutter {
	return cutterTo(t, func() string { return target })
}

func cutterTo(t testing.TB, target func() string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, target: target, conns: make(map[net.Conn]struct{})}
	t.Cleanup(func() {
		listener.Close()
		c.cut()
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go c.serve(near)
		}
	}()
	return c
}

func (c *cutter) address() string { return c.listener.Addr().String() }

func (c *cutter) serve(near net.Conn) {
	far, err := net.Dial("tcp", c.target())
	if err != nil {
		near.Close()
		return
	}
	c.mu.Lock()
	c.conns[near], c.conns[far] = struct{}{}, struct{}{}
	c.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buf)
				if n > 0 {
					_, _ = way[1].Write(buf[:n])
				}
				if err != nil {
					way[0].Close()
					way[1].Close()
					return
				}
			}
		})
	}
	both.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, near)
	delete(c.conns, far)
}

// cut ends all connections without a word.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
}

// balancer leads to any of the nodes, and can be cut.
type balancer struct {
	*cutter
	all *nodes
}

func newBalancer(t testing.TB, all *nodes) *balancer {
	t.Helper()
	return &balancer{cutter: cutterTo(t, all.address), all: all}
}

// client returns a client whose connections go through the balancer.
func (b *balancer) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New("http://"+b.address(), &client.Options{Token: b.all.site.token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
