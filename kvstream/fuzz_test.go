package kvstream_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

const fuzzMaxMessage = 4096

// frames cuts data into messages, each behind its length in two bytes, as a
// stream brings them.
func frames(data []byte) [][]byte {
	var out [][]byte
	for len(data) >= 2 {
		n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
		out = append(out, data[2:2+n])
		data = data[2+n:]
	}
	return out
}

func framed(t testing.TB, messages ...proto.Message) []byte {
	var out []byte
	for _, m := range messages {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		must(t, err)
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(data))), data...)
	}
	return out
}

// FuzzAnswers lets a peer say anything to a store that waits for three answers.
func FuzzAnswers(f *testing.F) {
	b := number(1)
	f.Add(framed(f, gotAnswer(0, b.Data), setAnswer(1, ""), gotAnswer(2, nil)))
	f.Add(framed(f, setAnswer(0, ""), gotAnswer(1, nil), gotAnswer(0, b.Data)))
	f.Add(framed(f, &agentv1.KvClientMessage{}, setAnswer(1, "blob too large"), gotAnswer(1<<32-1, b.Data), gotAnswer(2, []byte{})))
	f.Add(append(framed(f, gotAnswer(0, make([]byte, fuzzMaxMessage))), 0, 9, 0x12, 0xff))
	f.Fuzz(func(t *testing.T, data []byte) {
		wire := newWire[agentv1.KvServerMessage](8)
		store := kvstream.New(wire, &kvstream.Options{MaxMessage: fuzzMaxMessage})
		var calls sync.WaitGroup
		for _, call := range []func() ([]byte, error){
			func() ([]byte, error) { return store.Get(t.Context(), b.ID) },
			func() ([]byte, error) { return b.Data, store.Put(t.Context(), b) },
			func() ([]byte, error) { return store.Get(t.Context(), b.ID) },
		} {
			calls.Go(func() {
				if got, err := call(); err == nil && blob.Sum(got) != b.ID {
					t.Errorf("a call returned %q", got)
				}
			})
			_, err := wire.Receive()
			must(t, err)
		}
		for _, frame := range frames(data) {
			msg := &agentv1.KvClientMessage{}
			if proto.Unmarshal(frame, msg) == nil {
				store.Deliver(msg)
			}
		}
		must(t, store.Close())
		calls.Wait()
		<-store.Done()
		if waiting := store.Stats().Waiting; waiting != 0 {
			t.Errorf("%d calls still wait", waiting)
		}
	})
}

// FuzzRequests lets a peer ask anything. Every request is answered once, within
// the limit, and the store holds nothing under a wrong name.
func FuzzRequests(f *testing.F) {
	b, big := number(1), blob.New(make([]byte, fuzzMaxMessage))
	span := getRequest(9, b.ID[:])
	span.SpanContext = &agentv1.SpanContext{TraceId: "4bf92f3577b34da6a3ce929d0e0e4736", SpanId: "00f067aa0ba902b7", TraceFlags: proto.Uint32(1), TraceState: proto.String("a=b")}
	f.Add(framed(f, setRequest(0, b.ID[:], b.Data), getRequest(1, b.ID[:]), span))
	f.Add(framed(f, getRequest(1, b.ID[:31]), setRequest(1, append(b.ID.Bytes(), 0), nil), &agentv1.KvServerMessage{Id: 7}))
	f.Add(framed(f, setRequest(2, b.ID[:], []byte("other")), setRequest(2, big.ID[:], big.Data), getRequest(0, big.ID[:])))
	f.Fuzz(func(t *testing.T, data []byte) {
		local := memblob.New()
		must(t, local.Put(t.Context(), big)) // too large to be returned
		messages := frames(data)
		wire := newWire[agentv1.KvClientMessage](len(messages) + 1)
		responder := kvstream.NewResponder(wire, local, &kvstream.ServeOptions{MaxMessage: fuzzMaxMessage})
		asked := make(map[uint32]int)
		for _, frame := range messages {
			msg := &agentv1.KvServerMessage{}
			if proto.Unmarshal(frame, msg) == nil {
				asked[msg.GetId()]++
				must(t, responder.Handle(t.Context(), msg))
			}
		}
		must(t, responder.Close())
		for len(wire.messages) > 0 {
			answer := <-wire.messages
			asked[answer.GetId()]--
			if size := proto.Size(answer); size > fuzzMaxMessage {
				t.Errorf("an answer has %d bytes", size)
			}
		}
		for id, left := range asked {
			if left != 0 {
				t.Errorf("request %d: %d answers are missing", id, left)
			}
		}
		must(t, local.List(t.Context(), blob.ID{}, func(info blob.Info) error {
			data, err := local.Get(t.Context(), info.ID)
			if err == nil && blob.Sum(data) != info.ID {
				t.Errorf("the store holds %q under %s", data, info.ID)
			}
			return err
		}))
	})
}
