package scenario

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// Heads are linearizable through three nodes of which one after the other is
// killed: a caller that changes nodes sees the same.
func TestHeadsAreLinearizableThroughThreeNodes(t *testing.T) {
	for _, version := range realservers.PostgresVersions() {
		t.Run(fmt.Sprint("postgres ", version), func(t *testing.T) {
			linearHeads(t, version, testenv.Scale(2_500, 80_000), testenv.Scale(3, 30))
		})
	}
}

func linearHeads(t *testing.T, version, total, kills int) {
	const clients = 16
	database := realservers.Postgres(t, realservers.PostgresOptions{Version: version}).NewDatabase(t)
	all := newSite(t, database, realservers.S3(t)).startNodes(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	begin := time.Now()
	histories := make([][]porcupine.Operation, clients)
	var work sync.WaitGroup
	var calls atomic.Int64
	for id := range clients {
		connections := make([]*client.Client, 3)
		for i := range connections {
			connections[i] = all.client(t)
		}
		work.Go(func() {
			heads := &headClient{id: id, begin: begin, last: make(map[string]kv.Row)}
			for n := range total / clients {
				op, err := heads.onAnyNode(ctx, n, connections)
				if err != nil {
					t.Errorf("client %d, operation %d: %v", id, n, err)
					cancel()
					return
				}
				histories[id] = append(histories[id], op)
				calls.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	for n := range kills {
		if !reached(&calls, int64(total)*int64(n+1)/int64(kills+1), done) {
			t.Errorf("everything ended after %d kills", n)
			break
		}
		all.replace(t, n%3)
	}
	<-done
	checkHeads(t, histories)
}

// onAnyNode does one operation over one of several connections. What had no answer
// may still happen at any later time: the database may have it already.
func (c *headClient) onAnyNode(ctx context.Context, n int, connections []*client.Client) (porcupine.Operation, error) {
	call := headCall{head: keyspace.Head(fmt.Sprint("talk-", rand.IntN(16))), read: rand.IntN(2) == 0}
	if !call.read {
		call.expect, call.to = string(c.last[call.head].Value), c.root(n)
	}
	op := porcupine.Operation{ClientId: c.id, Input: call, Call: int64(time.Since(c.begin))}
	answer, err := c.do(ctx, connections[rand.IntN(len(connections))].Rows(), call)
	for call.read && err != nil && lost(err) && ctx.Err() == nil {
		answer, err = c.do(ctx, connections[rand.IntN(len(connections))].Rows(), call)
	}
	op.Return = int64(time.Since(c.begin))
	if err != nil && lost(err) && ctx.Err() == nil {
		answer, op.Return, err = headAnswer{unknown: true}, math.MaxInt64, nil
	}
	op.Output = answer
	return op, err
}
