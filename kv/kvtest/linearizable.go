package kvtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

const (
	clients   = 16
	registers = 16
)

// RunLinearizable lets 16 clients read, write, delete and compare-and-swap 16
// rows at once, and checks that the history of each row could have happened one
// operation after the other: 20,000 operations, 5,000,000 in a long run.
func RunLinearizable(t *testing.T, open func(t *testing.T) kv.Store) {
	store := open(t)
	const round = 10_000
	for i := range testenv.Scale(2, 500) {
		history, err := fight(t.Context(), store, fmt.Sprintf("linear:%d:", i), round/clients)
		if err != nil {
			t.Fatal(err)
		}
		switch porcupine.CheckOperationsTimeout(registerModel, history, 2*time.Minute) {
		case porcupine.Illegal:
			t.Fatalf("round %d: the history of %d operations is not linearizable", i, len(history))
		case porcupine.Unknown:
			t.Fatalf("round %d: no verdict on %d operations in two minutes", i, len(history))
		}
	}
}

type opKind int

const (
	opRead opKind = iota
	opWrite
	opDelete
	opSwap
)

// operation is one call. Every write has a unique value, so a version means exactly
// one value and the model needs no versions.
type operation struct {
	key        string
	kind       opKind
	expect, to string // "" is absent
}

type outcome struct {
	value string // of a read
	ok    bool   // of a swap
}

var registerModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(operation).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		op, out := input.(operation), output.(outcome)
		switch op.kind {
		case opRead:
			return out.value == state, state
		case opWrite, opDelete:
			return true, op.to
		}
		if out.ok {
			return op.expect == state, op.to
		}
		return op.expect != state, state
	},
}

// fight runs all clients and returns their operations and results.
func fight(ctx context.Context, store kv.Store, prefix string, each int) ([]porcupine.Operation, error) {
	histories := make([][]porcupine.Operation, clients)
	start := time.Now()
	var g errgroup.Group
	for id := range clients {
		g.Go(func() error {
			c := &client{ctx: ctx, store: store, prefix: prefix, id: id, last: map[string]kv.Row{}}
			for n := range each {
				op := c.next(n)
				call := time.Since(start)
				out, err := c.do(op)
				if err != nil {
					return fmt.Errorf("client %d, operation %d: %w", id, n, err)
				}
				histories[id] = append(histories[id], porcupine.Operation{
					ClientId: id, Input: op, Output: out, Call: int64(call), Return: int64(time.Since(start)),
				})
			}
			return nil
		})
	}
	err := g.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all, err
}

type client struct {
	ctx    context.Context // of the test, for all operations
	store  kv.Store
	prefix string
	id     int
	last   map[string]kv.Row // the row as last read; the zero row is absent
}

func (c *client) next(n int) operation {
	op := operation{key: fmt.Sprintf("%s%d", c.prefix, rand.IntN(registers))}
	unique := fmt.Sprintf("%d.%d", c.id, n)
	switch p := rand.IntN(100); {
	case p < 45:
		op.kind = opRead
	case p < 90:
		op.kind, op.expect, op.to = opSwap, string(c.last[op.key].Value), unique
	case p < 96:
		op.kind, op.to = opWrite, unique
	default:
		op.kind = opDelete
	}
	return op
}

func (c *client) do(op operation) (outcome, error) {
	b := &kv.Batch{}
	switch op.kind {
	case opRead:
		row, err := c.store.Get(c.ctx, op.key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return outcome{}, err
		}
		c.last[op.key] = row
		return outcome{value: string(row.Value)}, nil
	case opDelete:
		b.Delete = []string{op.key}
	case opSwap:
		b.Expect = []kv.Expect{{Key: op.key, Version: c.last[op.key].Version}}
		fallthrough
	case opWrite:
		b.Set = []kv.Set{{Key: op.key, Value: []byte(op.to)}}
	}
	err := c.store.Commit(c.ctx, b)
	if op.kind == opSwap && errors.Is(err, kv.ErrConflict) {
		return outcome{}, nil
	}
	return outcome{ok: err == nil}, err
}
