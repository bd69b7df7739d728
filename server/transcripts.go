package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/highlight"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/server/page"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/transcript"
)

// transcriptTurns is the default number of turns on a page.
const transcriptTurns = 50

// transcriptPart limits each text of a message, including the input and output of
// tools.
const transcriptPart = 256 << 10

// wholeTurns ends a page before a message that does not fit: at the end of the
// previous turn, where the next page can begin. The first turn is cut if it does not
// fit.
func wholeTurns(messages []*stetv1.TranscriptMessage, next *stetv1.TranscriptMessage) []*stetv1.TranscriptMessage {
	for end := len(messages); end > 0; end-- {
		if last := messages[end-1]; last.GetTurn() != next.GetTurn() {
			return messages[:end]
		}
	}
	return append(messages, &stetv1.TranscriptMessage{
		Turn: next.GetTurn(), Kind: string(transcript.Failure), Role: next.GetRole(), Text: "The rest of this turn is too large to show; stet export has all of it.",
	})
}

// Transcript returns messages in place of damaged parts, so that a reader sees the
// rest.
func (s *conversationService) Transcript(ctx context.Context, req *stetv1.TranscriptRequest) (*stetv1.TranscriptResponse, error) {
	t, err := s.transcript(ctx, req)
	if err != nil {
		return nil, err
	}
	turns := int(req.GetTurns())
	if turns == 0 || turns > wire.PageLimit {
		turns = transcriptTurns
	}
	from := min(int(req.GetFromTurn()), t.Turns())
	opts := &transcript.Options{
		TurnFrom: from, TurnTo: min(from+turns, t.Turns()), WithoutHeavyOutput: req.GetLight(),
		WithoutSubagents: true, WithoutSummaries: from > 0, Lenient: true,
	}
	res := &stetv1.TranscriptResponse{TotalTurns: uint32(t.Turns()), Subagents: t.Subagents()}
	if from == t.Turns() && from > 0 {
		return res, nil
	}
	room := wire.MaxMessage / 2
	coloured, done := highlight.Request(ctx)
	defer done()
	for message, err := range t.Messages(ctx, opts) {
		if err != nil {
			return nil, err
		}
		out := wireMessage(message)
		if req.GetHtml() && len(message.Text) <= transcriptPart {
			out.Html = page.Message(coloured, message)
		}
		if len(out.Html) > transcriptPart {
			out.Html = ""
		}
		if room -= proto.Size(out); room < 0 {
			res.Messages = wholeTurns(res.Messages, out)
			break
		}
		res.Messages = append(res.Messages, out)
	}
	if req.GetSubagent() == "" && req.GetId() != "" {
		if res.Turns, err = s.turnDetails(ctx, req.GetId(), t.Root, from, opts.TurnTo); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// turnDetails returns what is known about the turns of a part of a transcript.
func (s *conversationService) turnDetails(ctx context.Context, id string, root blob.ID, from, to int) ([]*stetv1.TranscriptTurn, error) {
	details, err := timeline.New(s.db.Checkpoints(), s.db.Conversations()).Details(ctx, id, root)
	if err != nil {
		return nil, err
	}
	var out []*stetv1.TranscriptTurn
	for n := from + 1; n <= to; n++ {
		d := details[uint64(n)]
		if d == nil {
			continue
		}
		turn := &stetv1.TranscriptTurn{Turn: uint32(n), Interrupted: d.Interrupted, Spent: page.Spent(timeline.SpentOf(d))}
		if !d.Started.IsZero() {
			turn.StartedMs = d.Started.UnixMilli()
		}
		out = append(out, turn)
	}
	return out, nil
}

func (s *conversationService) transcript(ctx context.Context, m *stetv1.TranscriptRequest) (*transcript.Transcript, error) {
	reader := transcript.New(s.db.Conversations(), s.db.Blobs())
	var t *transcript.Transcript
	var err error
	if len(m.GetRoot()) > 0 {
		var root blob.ID
		if root, err = blob.IDFromBytes(m.GetRoot()); err == nil {
			t, err = reader.At(ctx, root)
			err = ofNamedRoot(err)
		}
	} else {
		t, err = reader.Conversation(ctx, m.GetId())
	}
	if err != nil || m.GetSubagent() == "" {
		return t, err
	}
	return t.Subagent(ctx, m.GetSubagent())
}

// ofNamedRoot returns the cause of an error of a root that the caller named: the root
// may never have been stored, or be no state, and then nothing is lost. The cause of a
// damaged blob still is data loss.
func ofNamedRoot(err error) error {
	var lost *conversation.HydrationError
	if errors.As(err, &lost) {
		return lost.Err
	}
	return err
}

func wireMessage(m transcript.Message) *stetv1.TranscriptMessage {
	out := &stetv1.TranscriptMessage{
		Id: m.ID, Turn: uint32(m.Turn), Role: string(m.Speaker()), Kind: string(m.Kind), Text: part(m.Words()),
	}
	if !m.Time.IsZero() {
		out.TimeMs = m.Time.UnixMilli()
	}
	if t := m.Tool; t != nil {
		out.Tool = &stetv1.TranscriptTool{
			Name: t.Name, Status: string(t.Status), Output: part(t.Output), Path: t.Path, Diff: part(t.Diff),
			Added: int32(t.Added), Removed: int32(t.Removed), Subagent: t.Subagent,
			Truncated: t.Omitted > 0 || len(t.Output) > transcriptPart || len(t.Diff) > transcriptPart,
		}
		if input, err := json.Marshal(t.Input); err == nil && t.Input != nil && len(input) <= transcriptPart {
			out.Tool.InputJson = string(input)
		}
	}
	return out
}

// part returns the part of a text that an answer shows.
func part(text string) string {
	if len(text) <= transcriptPart {
		return text
	}
	return wire.Valid(text[:transcriptPart]) + "…"
}

// Export streams a conversation as a file.
func (s *conversationService) Export(ctx context.Context, req *stetv1.ExportConversationRequest, stream *connect.ServerStream[stetv1.ExportConversationResponse]) error {
	format, err := transcript.ParseFormat(req.GetFormat())
	if err != nil {
		return invalid("%v", err)
	}
	t, err := s.transcript(ctx, &stetv1.TranscriptRequest{Id: req.GetId()})
	if err != nil {
		return err
	}
	details, err := timeline.New(s.db.Checkpoints(), s.db.Conversations()).Details(ctx, req.GetId(), t.Root)
	if err != nil {
		return err
	}
	w := &exportWriter{stream: stream}
	note := func(turn int) string { return strings.Join(timeline.SpentOf(details[uint64(turn)]).Words(), " · ") }
	if err := transcript.Write(ctx, w, t, format, &transcript.Options{Note: note}); err != nil {
		return err
	}
	return w.flush()
}

// exportWriter sends written data in messages of a suitable size.
type exportWriter struct {
	stream *connect.ServerStream[stetv1.ExportConversationResponse]
	buf    []byte
}

func (w *exportWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if len(w.buf) >= chunkSize {
		return len(p), w.flush()
	}
	return len(p), nil
}

func (w *exportWriter) flush() error {
	for len(w.buf) > 0 {
		n := min(len(w.buf), chunkSize)
		if err := w.stream.Send(&stetv1.ExportConversationResponse{Chunk: w.buf[:n]}); err != nil {
			return err
		}
		w.buf = w.buf[n:]
	}
	return nil
}
