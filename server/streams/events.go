package streams

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/stet-dev/stet/stream"
)

// events is one connection with server-sent events.
type events struct {
	h      *handler
	w      http.ResponseWriter
	r      *http.Request
	base64 bool // the content is not text
}

// event is the control event, which follows each data event.
type event struct {
	Next     string `json:"streamNextOffset"`
	Cursor   string `json:"streamCursor,omitempty"`
	UpToDate bool   `json:"upToDate,omitempty"`
	Closed   bool   `json:"streamClosed,omitempty"`
}

// events sends present and new data until the stream is closed, the connection has
// lasted long enough, or the request ends.
func (h *handler) events(w http.ResponseWriter, r *http.Request, path string, from place) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	f := h.store.Follow(ctx, path, from.at, nil)
	b, err := f.Read(ctx)
	if err != nil {
		return err
	}
	e := &events{h: h, w: w, r: r, base64: !isText(b.Info.ContentType)}
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache")
	if e.base64 {
		head.Set(headerEncoding, "base64")
	}
	w.WriteHeader(http.StatusOK)
	until := time.Now().Add(h.opts.Lasting)
	for {
		if !e.send(b) || b.Closed || b.UpToDate && time.Now().After(until) {
			return nil
		}
		last := b
		if !b.UpToDate {
			b, err = f.Read(ctx)
		} else if b, err = e.next(ctx, f); errors.Is(err, errSilent) {
			// Sending the same place again keeps the connection alive.
			b, err = stream.Batch{Info: last.Info, Next: last.Next, UpToDate: true}, nil
		}
		if err != nil {
			return nil // the client connects again, and gets the reason
		}
	}
}

// errSilent means that nothing arrived for as long as a connection may be silent.
var errSilent = errors.New("nothing came")

// next waits for more, at most for the time that a connection may be silent.
func (e *events) next(ctx context.Context, f *stream.Follower) (stream.Batch, error) {
	waiting, cancel := context.WithTimeout(ctx, e.h.opts.Wait)
	defer cancel()
	b, err := f.Next(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = errSilent
	}
	return b, err
}

// send writes a batch and its control event, and reports whether the peer is still
// connected.
func (e *events) send(b stream.Batch) bool {
	var out bytes.Buffer
	if len(b.Appends) > 0 {
		out.Write(b.Encoded("event", func() []byte { return e.data(b) }))
	}
	c := event{Next: b.Next.String(), UpToDate: b.UpToDate, Closed: b.Closed}
	if !b.Closed {
		c.Cursor = cursor(e.r, time.Now())
	}
	line, err := json.Marshal(c)
	if err != nil {
		return false
	}
	writeEvent(&out, "control", string(line))
	if _, err := e.w.Write(out.Bytes()); err != nil {
		return false
	}
	err = http.NewResponseController(e.w).Flush()
	e.h.opts.Sent(e.r.Context())
	return err == nil
}

// data returns the data event of a batch.
func (e *events) data(b stream.Batch) []byte {
	var out bytes.Buffer
	body := stream.Body(b.Info.ContentType, b.Appends)
	text := string(body)
	if e.base64 {
		text = base64.StdEncoding.EncodeToString(body)
	}
	writeEvent(&out, "data", text)
	return out.Bytes()
}

// lines ends lines as the format of events does, so that content cannot begin an event
// of its own.
var lines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func writeEvent(out *bytes.Buffer, name, text string) {
	out.WriteString("event: " + name + "\n")
	for line := range strings.SplitSeq(lines.Replace(text), "\n") {
		out.WriteString("data:")
		if strings.HasPrefix(line, " ") {
			out.WriteByte(' ') // a reader removes one space
		}
		out.WriteString(line + "\n")
	}
	out.WriteString("\n")
}

// isText reports whether content can be sent in an event unencoded.
func isText(contentType string) bool {
	return strings.HasPrefix(stream.MediaType(contentType), "text/") || stream.IsJSON(contentType)
}
