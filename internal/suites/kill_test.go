package suites

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/client"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// The server is killed in the middle of the load of several clients, again and again.
// What it acknowledged is there afterwards, once; what it did not is there as a whole or
// not at all, and can be repeated.

func TestKilledUnderAppends(t *testing.T) { killed(t, embedded(t), &appends{}) }

func TestKilledUnderAppendsOnAFleet(t *testing.T) {
	if !whole() {
		t.Skip("make test-suites runs this")
	}
	killed(t, shared(t), &appends{})
}

func TestKilledUnderFrames(t *testing.T) { killed(t, embedded(t), &frames{}) }

func TestKilledUnderFramesOnAFleet(t *testing.T) {
	if !whole() {
		t.Skip("make test-suites runs this")
	}
	killed(t, shared(t), &frames{})
}

// workload is what clients do.
type workload interface {
	// begin gets a new server.
	begin(ctx context.Context, at server, writers int) error
	// next makes the next call of a writer, or the one that failed before. The count of
	// acknowledged ones is its number.
	next(ctx context.Context, writer, number int) error
	// check compares what the server has with the counts. There may be one call more of each
	// writer.
	check(ctx context.Context, acknowledged []int) error
}

func killed(t *testing.T, in place, work workload) {
	writers, rounds, calls := 8, 3, 40
	if whole() {
		writers, rounds, calls = 16, 10, 400
	}
	acknowledged := make([]int, writers)
	for round := range rounds {
		p := in.start(t)
		if err := work.begin(t.Context(), p.server, writers); err != nil {
			t.Fatal(err)
		}
		if err := work.check(t.Context(), acknowledged); err != nil {
			t.Fatalf("after %d kills: %v", round, err)
		}
		untilKilled(t, p, work, acknowledged, calls)
	}
	p := in.start(t)
	defer stop(t, p.cmd)
	if err := work.begin(t.Context(), p.server, writers); err != nil {
		t.Fatal(err)
	}
	// Repeats what may have been stored without an answer.
	for w, number := range acknowledged {
		if err := work.next(t.Context(), w, number); err != nil {
			t.Fatalf("writer %d, call %d: %v", w, number, err)
		}
		acknowledged[w]++
	}
	if err := work.check(t.Context(), acknowledged); err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// untilKilled lets all writers work until calls were acknowledged. The kill comes while the
// others wait for answers.
func untilKilled(t *testing.T, p *process, work workload, acknowledged []int, calls int) {
	t.Helper()
	var answers atomic.Int64
	var dying atomic.Bool
	var wg sync.WaitGroup
	for w := range acknowledged {
		wg.Go(func() {
			for {
				if err := work.next(t.Context(), w, acknowledged[w]); err != nil {
					if !dying.Load() {
						t.Errorf("writer %d, call %d: %v", w, acknowledged[w], err)
					}
					return
				}
				acknowledged[w]++
				if answers.Add(1) == int64(calls) {
					dying.Store(true)
					p.kill()
				}
			}
		})
	}
	wg.Wait()
	if !dying.Load() {
		t.Fatal("the writers ended before the server")
	}
}

// caller sends requests with the token of a server.
type caller struct {
	http *http.Client
	base string
}

func (c *caller) connect(at server) error {
	to, err := client.New(at.address, &client.Options{Token: at.token})
	if err == nil {
		c.http, c.base = to.HTTP()
	}
	return err
}

// appends is the load of a stream with several producers.
type appends struct{ caller }

func (a *appends) begin(ctx context.Context, at server, _ int) error {
	if err := a.connect(at); err != nil {
		return err
	}
	_, _, err := a.send(ctx, http.MethodPut, "", nil, nil)
	return err
}

// send returns the answer to a request about the stream.
func (a *appends) send(ctx context.Context, method, query string, header map[string]string, body []byte) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+"/v1/stream/killed"+query, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := a.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
	return res, data, err
}

// event is what a producer appends.
type event struct{ Writer, Number int }

func (a *appends) next(ctx context.Context, writer, number int) error {
	body, err := json.Marshal(event{writer, number})
	if err != nil {
		return err
	}
	_, _, err = a.send(ctx, http.MethodPost, "", map[string]string{
		"Producer-Id": fmt.Sprint("writer", writer), "Producer-Epoch": "0", "Producer-Seq": strconv.Itoa(number),
	}, body)
	return err
}

func (a *appends) check(ctx context.Context, acknowledged []int) error {
	have := make([]int, len(acknowledged))
	for offset := "-1"; ; {
		res, data, err := a.send(ctx, http.MethodGet, "?offset="+offset, nil, nil)
		if err != nil {
			return err
		}
		var events []event
		if err := json.Unmarshal(data, &events); err != nil {
			return fmt.Errorf("%w: %.80s", err, data)
		}
		for _, e := range events {
			if e.Number != have[e.Writer] {
				return fmt.Errorf("writer %d: event %d is at the place of event %d", e.Writer, e.Number, have[e.Writer])
			}
			have[e.Writer]++
		}
		if offset = res.Header.Get("Stream-Next-Offset"); res.Header.Get("Stream-Up-To-Date") != "" {
			return counts(have, acknowledged)
		}
	}
}

// counts reports whether all that was acknowledged is there, and at most one call more.
func counts(have, acknowledged []int) error {
	for w, n := range have {
		if n != acknowledged[w] && n != acknowledged[w]+1 {
			return fmt.Errorf("writer %d: %d calls are stored, %d were acknowledged", w, n, acknowledged[w])
		}
	}
	return nil
}

// frames is the load of a saver: a thread for each writer, with what a task wrote, and a
// list that grows.
type frames struct {
	threads stetv1connect.ThreadServiceClient
}

func (f *frames) begin(_ context.Context, at server, _ int) error {
	var c caller
	err := c.connect(at)
	f.threads = stetv1connect.NewThreadServiceClient(c.http, c.base)
	return err
}

func frameKey(writer, number int) *stetv1.FrameKey {
	key := &stetv1.FrameKey{Thread: fmt.Sprint("writer", writer)}
	if number >= 0 {
		key.Id = fmt.Sprintf("%06d", number)
	}
	return key
}

func jsonValue(of any) *stetv1.FrameValue {
	data, err := json.Marshal(of)
	if err != nil {
		panic(err) // texts only
	}
	return &stetv1.FrameValue{Type: "json", Content: &stetv1.FrameValue_Data{Data: data}}
}

// messages is the list as frame number has it.
func messages(writer, number int) []string {
	var list []string
	for n := range number + 1 {
		list = append(list, fmt.Sprintf("message %d of writer %d, which is long enough to be kept apart from its row", n, writer))
	}
	return list
}

func (f *frames) next(ctx context.Context, writer, number int) error {
	key := frameKey(writer, number)
	_, err := f.threads.PutWrites(ctx, &stetv1.PutWritesRequest{
		Key: key, Task: "task", Writes: []*stetv1.FrameWrite{{Channel: "messages", Value: jsonValue(number)}, {Index: 1, Channel: "step", Value: jsonValue(number)}},
	})
	if err != nil {
		return err
	}
	_, err = f.threads.Put(ctx, &stetv1.PutFrameRequest{
		Key: key, Parent: frameKey(writer, number-1).GetId(), Metadata: fmt.Appendf(nil, `{"step":%d}`, number), Body: jsonValue(number),
		Versions: map[string]string{"messages": strconv.Itoa(number)}, Values: map[string]*stetv1.FrameValue{"messages": jsonValue(messages(writer, number))},
	})
	return err
}

func (f *frames) check(ctx context.Context, acknowledged []int) error {
	have := make([]int, len(acknowledged))
	for w := range acknowledged {
		for cursor := ""; ; {
			res, err := f.threads.List(ctx, &stetv1.ListFramesRequest{Thread: frameKey(w, -1).GetThread(), Page: &stetv1.Page{Cursor: cursor, Limit: 100}})
			if err != nil {
				return err
			}
			for _, frame := range res.GetFrames() {
				if err := complete(frame, w); err != nil {
					return err
				}
				have[w]++
			}
			if len(res.GetDamaged()) > 0 {
				return fmt.Errorf("writer %d: damaged frames %v", w, res.GetDamaged())
			}
			if cursor = res.GetNextCursor(); cursor == "" {
				break
			}
		}
	}
	return counts(have, acknowledged)
}

// complete compares a frame with what its writer put.
func complete(frame *stetv1.Frame, writer int) error {
	number, err := strconv.Atoi(frame.GetKey().GetId())
	if err != nil {
		return err
	}
	want := jsonValue(messages(writer, number)).GetData()
	if got := frame.GetChannels()["messages"].GetValue().GetData(); !bytes.Equal(got, want) {
		return fmt.Errorf("writer %d: frame %d has the messages %.200s", writer, number, got)
	}
	if n := len(frame.GetWrites()); n != 2 || string(frame.GetBody().GetData()) != strconv.Itoa(number) {
		return fmt.Errorf("writer %d: frame %d has %d writes and the body %s", writer, number, n, frame.GetBody().GetData())
	}
	return nil
}
