package cursor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// lineStore is the SDK's store of *.ndjson files: one JSON object a line, where a
// later line about the same thing replaces an earlier one. A last line without a
// newline was cut off by a crash and is ignored.
type lineStore struct {
	dir string
	max int

	mu     sync.Mutex // guards closed
	closed bool
}

func (l *lineStore) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// each yields the objects of a file; a missing file is empty. It skips lines that are
// not objects and yields one error for them at the end: a crash can leave such a line
// anywhere, if the next write continued it.
func (l *lineStore) each(ctx context.Context, name string) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		f, err := l.open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 64<<10)
		var bad error // the first
		for n := 1; ; n++ {
			doc, err := readDocument(ctx, r, l.max)
			switch {
			case errors.Is(err, io.EOF):
				if bad != nil {
					yield(nil, bad)
				}
				return
			case errors.Is(err, ErrMalformed) || errors.Is(err, blob.ErrTooLarge):
				if bad == nil {
					bad = fmt.Errorf("read %s line %d: %w", f.Name(), n, err)
				}
			case err != nil:
				yield(nil, fmt.Errorf("read %s line %d: %w", f.Name(), n, err))
				return
			case doc != nil && !yield(doc, nil):
				return
			}
		}
	}
}

// readDocument reads a line; an empty line is nil.
func readDocument(ctx context.Context, r *bufio.Reader, most int) (Document, error) {
	line, err := readLine(r, most)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || len(bytes.TrimSpace(line)) == 0 {
		return nil, err
	}
	return ParseDocument(line)
}

func (l *lineStore) open(name string) (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, blob.ErrClosed
	}
	return os.Open(filepath.Join(l.dir, name))
}

// readLine returns the next whole line, or io.EOF. It skips lines that are too long.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if err == nil && long {
			return nil, blob.ErrTooLarge
		}
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err // io.EOF also for a cut-off line
		}
	}
}

// agents reads the agents; the last line of each wins. With an error it returns those
// read before.
func (l *lineStore) agents(ctx context.Context) (map[string]Document, error) {
	out := map[string]Document{}
	for doc, err := range l.each(ctx, "agents.ndjson") {
		if err != nil {
			return out, err
		}
		if id := doc.Text("agentId"); id != "" {
			out[id] = doc
		}
	}
	return out, nil
}

func lineHeader(id string, doc Document) Header {
	return Header{
		ID: id, Title: doc.Text("name"), Workspace: doc.Text("cwd"),
		Created: doc.time("createdAt"), Updated: doc.time("updatedAt"),
	}
}

func (s *Store) lineHeaders(ctx context.Context) iter.Seq2[Header, error] {
	return func(yield func(Header, error) bool) {
		agents, err := s.lines.agents(ctx)
		for _, id := range sortedKeys(agents) {
			if !yield(lineHeader(id, agents[id]), nil) {
				return
			}
		}
		if err != nil {
			yield(Header{}, err)
		}
	}
}

func (s *Store) lineConversation(ctx context.Context, id string) (*Conversation, error) {
	agents, err := s.lines.agents(ctx)
	doc := agents[id]
	if doc == nil && err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, fmt.Errorf("read conversation %s: %w", id, ErrNotFound)
	}
	conv := &Conversation{Header: lineHeader(id, doc), Agentic: true}
	root, err := checkpointRef(doc["latestCheckpoint"])
	if err != nil {
		conv.StateErr = &DataLossError{Source: "latestCheckpoint", Err: err}
		return conv, nil
	}
	return conv, hydrateRoot(ctx, conv, s.Blobs(), root, "latestCheckpoint")
}

func (l *lineStore) runs(ctx context.Context, agent string) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		byID := map[string]Run{}
		var bad error
		for doc, err := range l.each(ctx, "runs.ndjson") {
			if err != nil {
				bad = err
				break
			}
			if doc.Text("agentId") == agent {
				byID[doc.Text("runId")] = lineRun(doc)
			}
		}
		runs := make([]Run, 0, len(byID))
		for _, id := range sortedKeys(byID) {
			runs = append(runs, byID[id])
		}
		slices.SortStableFunc(runs, func(a, b Run) int { return a.Turn - b.Turn })
		for _, r := range runs {
			if !yield(r, nil) {
				return
			}
		}
		if bad != nil {
			yield(Run{}, bad)
		}
	}
}

func lineRun(doc Document) Run {
	r := Run{
		ID: doc.Text("runId"), AgentID: doc.Text("agentId"), Status: doc.Text("status"), Turn: doc.Integer("turnNumber"),
		Created: doc.time("createdAt"), Updated: doc.time("updatedAt"), Result: doc.anyText("result"),
	}
	r.Start, _ = checkpointRef(doc["startCheckpointRef"])
	r.Latest, _ = checkpointRef(doc["latestCheckpointRef"])
	return r
}

func (l *lineStore) events(ctx context.Context, run string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for doc, err := range l.each(ctx, "run_events.ndjson") {
			if err != nil {
				yield(Event{}, err)
				return
			}
			e := Event{
				RunID: doc.Text("runId"), Type: doc.Text("eventType"), Offset: doc.Text("offset"),
				Seq: int64(doc.Integer("seq")), Created: doc.time("createdAt"),
				Payload: doc["payload"], PayloadRef: doc.Text("payloadRef"),
			}
			if e.RunID == run && e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}

// blobs yields the blobs of checkpoints.ndjson, in the order of the file.
func (l *lineStore) blobs(ctx context.Context) iter.Seq2[lineBlob, error] {
	return func(yield func(lineBlob, error) bool) {
		for doc, err := range l.each(ctx, "checkpoints.ndjson") {
			if err != nil {
				yield(lineBlob{}, err)
				return
			}
			id, err := blob.ParseID(doc.Text("blobId"))
			if err != nil {
				continue // not a valid blob id
			}
			data, err := base64.StdEncoding.DecodeString(doc.Text("dataBase64"))
			if err != nil {
				data = nil // fails its check
			}
			if !yield(lineBlob{id, data}, nil) {
				return
			}
		}
	}
}

type lineBlob struct {
	id   blob.ID
	data []byte
}
