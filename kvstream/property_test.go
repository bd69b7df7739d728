package kvstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// TestInterleavings has a peer answer concurrent calls in any order, twice, not
// at all, wrongly and under wrong ids, and sometimes close the stream. Whatever
// happens, every call returns, and no call returns what is not true.
func TestInterleavings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The engine would ask for the deadline, which a bubble has none of.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			p := newCapricious(t.Context())
			for range rapid.IntRange(1, 12).Draw(rt, "calls") {
				p.call(rt)
			}
			for range rapid.IntRange(0, 40).Draw(rt, "steps") {
				p.step(rt)
			}
			p.finish(rt)
		})
	})
}

// capricious is a peer with moods, and the store that depends on it.
type capricious struct {
	ctx   context.Context
	store *kvstream.Store
	wire  *requests

	held     []*agentv1.KvServerMessage // asked and not answered
	answered []uint32                   // so that they can be answered again
	strange  uint64                     // answers that must be dropped
	calls    []pending
	// What the peer has said of a blob, at least once.
	stored, returned, denied map[blob.ID]bool
}

// pending is a call of which the truth will be known later.
type pending struct {
	result chan error
	name   string
	// backed tells whether the peer has said what a success needs.
	backed func() bool
}

func newCapricious(ctx context.Context) *capricious {
	p := &capricious{ctx: ctx, wire: newWire[agentv1.KvServerMessage](100),
		stored: make(map[blob.ID]bool), returned: make(map[blob.ID]bool), denied: make(map[blob.ID]bool)}
	p.store = kvstream.New(p.wire, &kvstream.Options{MaxRequests: 5, Timeout: time.Minute, KnownFor: -1})
	return p
}

// call starts a call.
func (p *capricious) call(rt *rapid.T) {
	b, second := number(rapid.IntRange(0, 5).Draw(rt, "blob")), number(7)
	c := pending{result: make(chan error, 1), backed: func() bool { return true }}
	c.name = rapid.SampledFrom([]string{"get", "put", "has", "flush"}).Draw(rt, "call")
	var call func() error
	switch c.name {
	case "get":
		c.backed = func() bool { return p.returned[b.ID] }
		call = func() error {
			data, err := p.store.Get(p.ctx, b.ID)
			if err == nil && !bytes.Equal(data, b.Data) {
				err = fmt.Errorf("get %q returned %q", b.Data, data)
			}
			return err
		}
	case "put":
		c.backed = func() bool { return p.stored[b.ID] && p.stored[second.ID] }
		call = func() error { return p.store.Put(p.ctx, b, second) }
	case "has":
		c.backed = func() bool { return p.returned[b.ID] }
		call = func() error {
			has, err := p.store.Has(p.ctx, b.ID)
			if err == nil && !has[0] {
				return blob.ErrNotFound
			}
			return err
		}
	case "flush":
		call = func() error { return p.store.Flush(p.ctx) }
	}
	p.calls = append(p.calls, c)
	go func() { c.result <- call() }()
}

// listen collects the requests that have arrived.
func (p *capricious) listen() {
	synctest.Wait()
	for len(p.wire.messages) > 0 {
		p.held = append(p.held, <-p.wire.messages)
	}
}

// pick takes one of the requests that wait, or nil.
func (p *capricious) pick(rt *rapid.T) *agentv1.KvServerMessage {
	if len(p.held) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(p.held)-1).Draw(rt, "which")
	msg := p.held[i]
	p.held = append(p.held[:i], p.held[i+1:]...)
	return msg
}

func (p *capricious) step(rt *rapid.T) {
	p.listen()
	switch mood := rapid.IntRange(0, 9).Draw(rt, "mood"); mood {
	default:
		if msg := p.pick(rt); msg != nil {
			p.answer(rt, msg)
		}
	case 1:
		p.pick(rt) // and forget it
	case 2: // lie: other content, or the other kind
		if msg := p.pick(rt); msg != nil {
			p.answered = append(p.answered, msg.GetId())
			p.store.Deliver(gotAnswer(msg.GetId(), []byte("a lie")))
		}
	case 3:
		if len(p.answered) > 0 {
			p.strange++
			p.store.Deliver(gotAnswer(rapid.SampledFrom(p.answered).Draw(rt, "again"), number(0).Data))
		}
	case 4:
		p.strange++
		p.store.Deliver(setAnswer(rapid.Uint32Range(1000, 1<<32-1).Draw(rt, "never asked"), ""))
	case 5:
		p.call(rt)
	case 6:
		if rapid.IntRange(0, 9).Draw(rt, "close") == 0 {
			p.store.CloseWithError(errCut)
		}
	}
}

// answer tells the truth, as far as there is one.
func (p *capricious) answer(rt *rapid.T, msg *agentv1.KvServerMessage) {
	p.answered = append(p.answered, msg.GetId())
	if set := msg.GetSetBlobArgs(); set != nil {
		if rapid.IntRange(0, 4).Draw(rt, "refuse") == 0 {
			p.store.Deliver(setAnswer(msg.GetId(), "no space left for the store"))
			return
		}
		p.stored[blob.ID(set.GetBlobId())] = true
		p.store.Deliver(setAnswer(msg.GetId(), ""))
		return
	}
	for i := range 8 {
		if b := number(i); bytes.Equal(b.ID[:], msg.GetGetBlobArgs().GetBlobId()) {
			if rapid.Bool().Draw(rt, "has it") {
				p.returned[b.ID] = true
				p.store.Deliver(gotAnswer(msg.GetId(), b.Data))
			} else {
				p.denied[b.ID] = true
				p.store.Deliver(gotAnswer(msg.GetId(), nil))
			}
		}
	}
}

// finish lets the rest time out or be answered, and then judges.
func (p *capricious) finish(rt *rapid.T) {
	p.listen()
	if rapid.Bool().Draw(rt, "answer the rest") {
		for ; len(p.held) > 0; p.listen() {
			msg := p.held[0]
			p.held = p.held[1:]
			before := p.store.Stats()
			p.answer(rt, msg)
			if after := p.store.Stats(); after.Repeated > before.Repeated {
				p.strange++ // its caller had given up
			}
		}
	}
	for _, c := range p.calls {
		err := <-c.result
		if !p.allowed(err) {
			rt.Errorf("%s failed in an unexpected way: %v", c.name, err)
		}
		if err == nil && !c.backed() {
			rt.Errorf("%s succeeded without the peer's word", c.name)
		}
	}
	stats := p.store.Stats()
	if stats.Waiting != 0 || stats.Unknown+stats.Repeated < p.strange {
		rt.Errorf("stats: got %+v, want none waiting and at least %d strange answers dropped", stats, p.strange)
	}
	if err := p.store.Close(); err != nil {
		rt.Error(err)
	}
	<-p.store.Done()
	p.wire.end(io.EOF)
}

func (p *capricious) allowed(err error) bool {
	for _, ok := range []error{nil, kvstream.ErrNoAnswer, kvstream.ErrUnexpectedAnswer,
		blob.ErrCorrupt, blob.ErrFull, blob.ErrClosed} {
		if errors.Is(err, ok) {
			return true
		}
	}
	return errors.Is(err, blob.ErrNotFound) && len(p.denied) > 0
}
