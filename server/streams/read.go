package streams

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/stet-dev/stet/stream"
)

// Values of the parameter live.
const (
	liveLongPoll = "long-poll"
	liveSSE      = "sse"
)

// place is where a read begins.
type place struct {
	at   stream.Offset
	now  bool   // at the end, wherever that is
	text string // as it was given
}

// placeOf returns where a request begins to read.
func placeOf(r *http.Request) (place, error) {
	query := r.URL.Query()
	given, ok := query["offset"]
	switch {
	case !ok && Live(r):
		return place{}, badRequest("a live read needs an offset")
	case !ok || len(given) == 1 && given[0] == "-1":
		return place{text: "-1"}, nil
	case len(given) > 1:
		return place{}, badRequest("there is more than one offset")
	case given[0] == "now":
		return place{now: true, text: "now"}, nil
	}
	at, err := stream.ParseOffset(given[0])
	return place{at: at, text: given[0]}, err
}

func (h *handler) read(w http.ResponseWriter, r *http.Request, path string) error {
	info, err := h.store.Info(r.Context(), path)
	if err != nil {
		return err
	}
	from, err := placeOf(r)
	if err != nil {
		return err
	}
	if from.now {
		from.at = info.Tail
	}
	switch live := r.URL.Query().Get("live"); live {
	case "":
		return h.catchUp(w, r, path, from)
	case liveLongPoll:
		return h.longPoll(w, r, path, from)
	case liveSSE:
		return h.events(w, r, path, from)
	default:
		return badRequest("live is %.32q; it is %s or %s", live, liveLongPoll, liveSSE)
	}
}

// catchUp answers with the data that is already there.
func (h *handler) catchUp(w http.ResponseWriter, r *http.Request, path string, from place) error {
	b, err := h.store.Read(r.Context(), path, from.at, nil)
	if err != nil {
		return err
	}
	if from.now {
		// An append since the end was read is not part of the answer.
		end := b.Next == from.at
		b.Appends, b.Next, b.UpToDate, b.Closed = nil, from.at, true, b.Closed && end
	}
	h.answer(w, r, b, from)
	return nil
}

// answer writes a batch.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, b stream.Batch, from place) {
	head := w.Header()
	head.Set("Content-Type", b.Info.ContentType)
	head.Set(headerNext, b.Next.String())
	if b.UpToDate {
		head.Set(headerUpToDate, "true")
	}
	if b.Closed {
		head.Set(headerClosed, "true")
	}
	switch {
	case from.now:
		head.Set("Cache-Control", "no-store")
	case b.UpToDate: // there may be more the next time
		head.Set("Cache-Control", "private, no-cache")
	default: // what lies between two places does not change
		head.Set("Cache-Control", "private, max-age=60, stale-while-revalidate=300")
	}
	if !from.now {
		tag := etag(b.Info, from.text, b.Next, b.Closed)
		head.Set("ETag", tag)
		if matches(r, tag) {
			head.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	body := b.Encoded("body", func() []byte { return stream.Body(b.Info.ContentType, b.Appends) })
	head.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails only if the peer is gone
	h.opts.Sent(r.Context())
}

// longPoll answers as soon as there is data, or when its time is over. A request that ends
// for a cause of its own, such as a revoked token, fails with it.
func (h *handler) longPoll(w http.ResponseWriter, r *http.Request, path string, from place) error {
	ctx, cancel := context.WithTimeout(r.Context(), h.opts.Wait)
	defer cancel()
	b, err := h.store.Follow(ctx, path, from.at, nil).Next(ctx)
	over := err != nil && ctx.Err() != nil
	if err != nil && !over {
		return err
	}
	if cause := context.Cause(r.Context()); cause != r.Context().Err() {
		return cause
	}
	w.Header().Set(headerCursor, cursor(r, time.Now()))
	if !over && len(b.Appends) > 0 {
		from.now = false // the answer holds data, which does not change
		h.answer(w, r, b, from)
		return nil
	}
	w.Header().Set(headerNext, from.at.String())
	w.Header().Set(headerUpToDate, "true")
	w.Header().Set("Cache-Control", "no-store")
	if !over && b.Closed {
		w.Header().Set(headerClosed, "true")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Cursors number intervals of time. A cache in front of the server that joins waiting
// readers by their address does not answer a later interval from an earlier one.
const (
	cursorInterval  = 20 * time.Second
	maxCursorJitter = time.Hour
)

var cursorStart = time.Date(2024, time.October, 9, 0, 0, 0, 0, time.UTC)

// cursor returns the number of the current interval or, if the caller has that or a
// later one, a number after it.
func cursor(r *http.Request, now time.Time) string {
	current := int64(now.Sub(cursorStart) / cursorInterval)
	given, err := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	if err != nil || given < current || given > 1<<53 {
		return strconv.FormatInt(current, 10)
	}
	return strconv.FormatInt(given+1+rand.Int64N(int64(maxCursorJitter/cursorInterval)), 10)
}
