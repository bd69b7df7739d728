package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// A head is a register with compare-and-swap. Every swap has a value of its own,
// so that a version stands for exactly one value.
type (
	headCall struct {
		head       string
		read       bool
		expect, to string // "" is absent
	}
	headAnswer struct {
		value   string // of a read
		ok      bool   // of a swap
		unknown bool   // the server was killed before it answered
	}
)

var headModel = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byHead := make(map[string][]porcupine.Operation)
		for _, op := range history {
			head := op.Input.(headCall).head
			byHead[head] = append(byHead[head], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byHead {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{""} },
	Step: func(state, input, output any) []any {
		call, answer := input.(headCall), output.(headAnswer)
		fits := call.expect == state
		switch {
		case call.read && answer.value == state:
			return []any{state}
		case call.read:
			return nil
		case answer.unknown && fits:
			return []any{state, call.to}
		case answer.unknown:
			return []any{state}
		case answer.ok != fits:
			return nil
		case fits:
			return []any{call.to}
		}
		return []any{state}
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// fleet is a server that is killed and started again on the same store.
type fleet struct {
	t     *testing.T
	dir   string
	calls atomic.Int64
	stuck atomic.Int64 // the last life whose end a caller waits for

	mu    sync.Mutex // guards what follows
	now   *child
	life  int           // how many servers there were
	alive chan struct{} // closed when the next one is up
}

// server returns the address of the present server and the number of its life.
func (f *fleet) server() (string, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now.address, f.life
}

// after waits until the server of a life is dead, so that nothing can come of a
// call any more that it did not answer.
func (f *fleet) after(ctx context.Context, life int) error {
	f.stuck.Store(int64(life))
	for {
		f.mu.Lock()
		now, alive := f.life, f.alive
		f.mu.Unlock()
		if now > life {
			return nil
		}
		select {
		case <-alive:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fleet) restart() {
	f.now.kill()
	next := spawn(f.t, f.dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.life = next, f.life+1
	close(f.alive)
	f.alive = make(chan struct{})
}

// Heads stay linearizable under 16 clients while the server is killed again and
// again: an acknowledged swap is never lost, a refused one never happens, one
// without an answer happened or did not.
func TestHeadsAreLinearizableAcrossServerKills(t *testing.T) {
	const clients = 16
	total := testenv.Scale(20_000, 160_000)
	kills := testenv.Scale(8, 40)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	f := &fleet{t: t, dir: t.TempDir(), alive: make(chan struct{}), life: 1}
	f.now = spawn(t, f.dir)
	defer func() { f.now.kill() }()

	begin := time.Now()
	histories := make([][]porcupine.Operation, clients)
	var work sync.WaitGroup
	for id := range clients {
		work.Go(func() {
			c := &headClient{fleet: f, id: id, begin: begin, last: make(map[string]kv.Row)}
			defer c.close()
			for n := range total / clients {
				op, err := c.operation(ctx, n)
				if err != nil {
					t.Errorf("client %d, operation %d: %v", id, n, err)
					cancel()
					return
				}
				histories[id] = append(histories[id], op)
				f.calls.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	killed := 0
	for over := false; !over; {
		due := int64(total) * int64(killed+1) / int64(kills+1)
		select {
		case <-done:
			over = true
		case <-time.After(10 * time.Millisecond):
			// A caller that waits for the end of this life, although the server was not killed,
			// gets it.
			if killed < kills && f.calls.Load() >= due || f.stuck.Load() == int64(f.life) {
				f.restart()
				killed++
			}
		}
	}
	if killed < kills {
		t.Errorf("the server was killed %d times, want %d", killed, kills)
	}
	checkHeads(t, histories)
}

func checkHeads(t *testing.T, histories [][]porcupine.Operation) {
	t.Helper()
	var all []porcupine.Operation
	unknown := 0
	for _, h := range histories {
		for _, op := range h {
			if op.Output.(headAnswer).unknown {
				unknown++
			}
		}
		all = append(all, h...)
	}
	t.Logf("%d operations, %d without an answer", len(all), unknown)
	switch porcupine.CheckOperationsTimeout(headModel, all, 5*time.Minute) {
	case porcupine.Illegal:
		t.Errorf("the history of %d operations is not linearizable", len(all))
	case porcupine.Unknown:
		t.Errorf("no verdict on %d operations", len(all))
	}
}

// A checker that accepts everything would show nothing.
func TestHeadModelFindsLostSwaps(t *testing.T) {
	swap := func(at int64, expect, to string, answer headAnswer) porcupine.Operation {
		return porcupine.Operation{Input: headCall{head: "h", expect: expect, to: to}, Output: answer, Call: at, Return: at + 1}
	}
	read := func(at int64, value string) porcupine.Operation {
		return porcupine.Operation{Input: headCall{head: "h", read: true}, Output: headAnswer{value: value}, Call: at, Return: at + 1}
	}
	yes, lost := headAnswer{ok: true}, headAnswer{unknown: true}
	for name, test := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"kept":                  {[]porcupine.Operation{swap(1, "", "a", yes), read(3, "a")}, true},
		"lost after the answer": {[]porcupine.Operation{swap(1, "", "a", yes), read(3, "")}, false},
		"two winners":           {[]porcupine.Operation{swap(1, "", "a", yes), swap(3, "", "b", yes)}, false},
		"refused, yet it fits":  {[]porcupine.Operation{swap(1, "", "a", headAnswer{})}, false},
		"unknown, happened":     {[]porcupine.Operation{swap(1, "", "a", lost), read(3, "a")}, true},
		"unknown, did not":      {[]porcupine.Operation{swap(1, "", "a", lost), read(3, "")}, true},
		"unknown, then taken back": {[]porcupine.Operation{
			swap(1, "", "a", lost), read(3, "a"), read(5, ""),
		}, false},
	} {
		if got := porcupine.CheckOperations(headModel, test.history); got != test.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, test.want)
		}
	}
}

// headClient is one client, with a connection of its own.
type headClient struct {
	fleet *fleet
	id    int
	begin time.Time
	last  map[string]kv.Row // as last read; the zero row is absent
	c     *client.Client
	life  int
}

func (c *headClient) close() {
	if c.c != nil {
		c.c.Close()
	}
}

// rows returns the rows of the present server.
func (c *headClient) rows() (*client.Rows, error) {
	address, life := c.fleet.server()
	if c.c == nil || life != c.life {
		c.close()
		var err error
		if c.c, err = client.New(address, &client.Options{Token: token}); err != nil {
			return nil, err
		}
		c.life = life
	}
	return c.c.Rows(), nil
}

// root returns what a client's operation n sets a head to. The server takes only what
// may be the name of a state.
func (c *headClient) root(n int) string {
	return blob.Sum(fmt.Appendf(nil, "%d.%d", c.id, n)).String()
}

func (c *headClient) operation(ctx context.Context, n int) (porcupine.Operation, error) {
	rows, err := c.rows()
	if err != nil {
		return porcupine.Operation{}, err
	}
	call := headCall{head: keyspace.Head(fmt.Sprint("talk-", rand.IntN(16))), read: rand.IntN(2) == 0}
	if !call.read {
		call.expect, call.to = string(c.last[call.head].Value), c.root(n)
	}
	op := porcupine.Operation{ClientId: c.id, Input: call, Call: int64(time.Since(c.begin))}
	answer, err := c.do(ctx, rows, call)
	for errors.Is(err, client.ErrUnreachable) {
		if err := c.fleet.after(ctx, c.life); err != nil {
			return op, err
		}
		if answer.unknown = !call.read; answer.unknown {
			err = nil
			break
		}
		if rows, err = c.rows(); err == nil {
			answer, err = c.do(ctx, rows, call)
		}
	}
	op.Output, op.Return = answer, int64(time.Since(c.begin))
	return op, err
}

func (c *headClient) do(ctx context.Context, rows *client.Rows, call headCall) (headAnswer, error) {
	if call.read {
		row, err := rows.Get(ctx, call.head)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return headAnswer{}, err
		}
		c.last[call.head] = row
		return headAnswer{value: string(row.Value)}, nil
	}
	err := rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: call.head, Version: c.last[call.head].Version}},
		Set:    []kv.Set{{Key: call.head, Value: []byte(call.to)}},
	})
	if errors.Is(err, kv.ErrConflict) {
		return headAnswer{}, nil
	}
	return headAnswer{ok: err == nil}, err
}
