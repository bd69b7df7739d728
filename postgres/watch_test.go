package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/kv"
)

// patience is how long a hint may take before a test calls it lost.
const patience = 30 * time.Second

func awaitHint(t *testing.T, wake <-chan struct{}, after string) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(patience):
		t.Fatalf("no hint within %v after %s", patience, after)
	}
}

// awaitListening waits until notifications of other nodes arrive.
func awaitListening(t *testing.T, from, to *Tenant) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wake := to.Rows().Watch(ctx, kv.Range{Start: "ready", End: "ready\x00"})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		mustCommit(t, from.Rows(), set("ready", "1"))
		select {
		case <-wake:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("the node does not listen")
}

// TestHintsCrossNodes has no polling, so that only notifications can wake.
func TestHintsCrossNodes(t *testing.T) {
	a, b := twoNodes(t, &Options{PollInterval: time.Hour})
	writer := newTenant(t, a)
	reader := tenantOf(t, b, writer.Name())
	other := newTenant(t, b)
	awaitListening(t, writer, reader)
	wake := reader.Rows().Watch(t.Context(), kv.Range{Start: "w:", End: "w;"})
	foreign := other.Rows().Watch(t.Context(), kv.Range{})
	long := strings.Repeat("long ", 100)
	for name, batch := range map[string]*kv.Batch{
		"a set":           set("w:1", "1"),
		"a delete":        {Delete: []string{"w:1"}},
		"a range":         {DeleteRange: []kv.Range{{Start: "w:", End: "w;"}}},
		"everything":      {DeleteRange: []kv.Range{{}}},
		"a long key":      set("w:"+long, "1"),
		"odd bytes":       set("w:\xff *+%\n\t", "1"),
		"many keys":       manySets("w:"),
		"many other keys": {Set: append(manySets("v:").Set, manySets("w:").Set...)},
	} {
		mustCommit(t, writer.Rows(), batch)
		awaitHint(t, wake, name)
	}
	if len(foreign) > 0 {
		t.Error("a watcher of another tenant was woken")
	}
}

func manySets(prefix string) *kv.Batch {
	b := &kv.Batch{}
	for i := range 2000 {
		b.Set = append(b.Set, kv.Set{Key: fmt.Sprintf("%s%d", prefix, i)})
	}
	return b
}

// TestPollingIsTheFloor wakes without any notification.
func TestPollingIsTheFloor(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), &Options{PollInterval: 5 * time.Millisecond})
	wake := newTenant(t, db).Rows().Watch(t.Context(), kv.Range{Start: "nobody writes this"})
	for range 5 {
		awaitHint(t, wake, "nothing")
	}
}

// TestListeningAgain loses the connection that listens.
func TestListeningAgain(t *testing.T) {
	a, b := twoNodes(t, &Options{PollInterval: time.Hour})
	writer := newTenant(t, a)
	reader := tenantOf(t, b, writer.Name())
	awaitListening(t, writer, reader)
	_, err := a.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	if err != nil {
		t.Fatal(err)
	}
	awaitListening(t, writer, reader)
}

func TestHintsReadBack(t *testing.T) {
	touch := func(keys ...string) *touched {
		all := newTouched()
		for _, k := range keys {
			all.addKey(k)
		}
		return all
	}
	payloads := encodeHints("node", map[string]*touched{
		"a tenant*\n": touch("k:1", "k:\xff 2"), "b": touch(""), "*": touch("x"),
	})
	if len(payloads) != 1 {
		t.Fatalf("%d payloads, want 1", len(payloads))
	}
	node, hints, ok := decodeHints(payloads[0])
	want := []hint{{"*", []string{"x"}}, {"a tenant*\n", []string{"k:1", "k:\xff 2"}}, {"b", []string{}}}
	if !ok || node != "node" || fmt.Sprintf("%q", hints) != fmt.Sprintf("%q", want) {
		t.Errorf("read back %q, %q, %t, want %q", node, hints, ok, want)
	}
}

func TestHintsAreBounded(t *testing.T) {
	all := make(map[string]*touched)
	for i := range 3000 {
		one := newTouched()
		for k := range 200 {
			one.addKey(strings.Repeat("\xff", 90) + fmt.Sprint(k))
		}
		all[fmt.Sprintf("%d%s", i, strings.Repeat("é", 100))] = one
	}
	for n := range 3 {
		payloads := encodeHints("node", all)
		total := 0
		for _, p := range payloads {
			if len(p) >= 8000 {
				t.Errorf("a payload of %d bytes", len(p))
			}
			if _, hints, ok := decodeHints(p); ok {
				total += len(hints)
			} else {
				total = len(all) // anything may have changed
			}
		}
		if total != len(all) {
			t.Errorf("round %d: %d tenants are told, want %d", n, total, len(all))
		}
		for name := range all {
			if len(all) <= 30/(n+1) {
				break
			}
			delete(all, name)
		}
	}
}

func FuzzHints(f *testing.F) {
	f.Add("node\na k:1")
	f.Add("node\n*")
	f.Fuzz(func(t *testing.T, payload string) {
		_, hints, ok := decodeHints(payload)
		if !ok && hints != nil {
			t.Errorf("%q is refused and yet gives %q", payload, hints)
		}
		for _, h := range hints {
			h.concerns(kv.Range{Start: "a"})
		}
	})
}
