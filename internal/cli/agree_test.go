package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server"
)

// randomHistory is a workspace in which two conversations and the user work, rewind,
// undo and forget at random.
type randomHistory struct {
	t   *testing.T
	db  *stet.DB
	w   *checkpoint.Workspace
	rnd *rand.Rand
	ids []string
}

func (h *randomHistory) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *randomHistory) step(n int) {
	ctx := h.t.Context()
	conv := []string{"", "one", "two"}[h.rnd.IntN(3)]
	switch h.rnd.IntN(8) {
	case 0:
		if len(h.ids) > 0 {
			h.rewind(h.ids[h.rnd.IntN(len(h.ids))], conv)
		}
	case 1:
		_, _ = h.w.Undo(ctx, &checkpoint.UndoOptions{Choice: checkpoint.Theirs}) // there may be nothing to undo
	case 2:
		if len(h.ids) > 3 {
			h.forget(h.rnd.IntN(len(h.ids) - 1))
		}
	default:
		h.must(os.WriteFile(filepath.Join(h.w.Path(), "f"+conv), fmt.Appendln(nil, n), 0o600))
		req := checkpoint.Request{Conversation: conv, Turn: uint64(n), Side: checkpoint.Side(h.rnd.IntN(3))}
		if conv == "" {
			req.Turn, req.Side = 0, checkpoint.NoSide
		}
		res, err := h.w.Checkpoint(ctx, req)
		h.must(err)
		h.ids = append(h.ids, res.Record.ID)
		if h.rnd.IntN(6) == 0 {
			h.must(h.db.Checkpoints().Pin(ctx, fmt.Sprint("pin", n), res.Record.ID, ""))
		}
	}
}

func (h *randomHistory) rewind(to, conv string) {
	plan, err := h.w.Plan(h.t.Context(), checkpoint.RewindRequest{To: to, Conversation: conv, Scope: checkpoint.FilesOnly, Choice: checkpoint.Theirs})
	h.must(err)
	done, err := h.w.Rewind(h.t.Context(), plan.Request(), plan.Token)
	h.must(err)
	h.ids = append(h.ids, done.Saved.ID, done.Record.ID)
}

// forget removes a checkpoint as retention does, which leaves young ones alone.
func (h *randomHistory) forget(n int) {
	id := h.ids[n]
	h.ids = append(h.ids[:n:n], h.ids[n+1:]...)
	rec, err := h.db.Checkpoints().Get(h.t.Context(), id)
	h.must(err)
	b := &kv.Batch{Delete: []string{keyspace.Checkpoint(id), keyspace.WorkspaceCheckpoint(rec.Workspace, id)}}
	if rec.Conversation != "" {
		b.Delete = append(b.Delete, keyspace.ConversationCheckpoint(rec.Conversation, id))
	}
	h.must(h.db.Rows().Commit(h.t.Context(), b))
}

// The command line and the page show the same history.
func TestLogAndPageAgree(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { agreeOn(t, seed) })
	}
}

func agreeOn(t *testing.T, seed uint64) {
	store, dir := t.TempDir(), t.TempDir()
	db, err := stet.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &randomHistory{t: t, db: db, rnd: rand.New(rand.NewPCG(seed, 17))}
	for _, id := range []string{"one", "two"} {
		_, err := db.Conversations().Create(t.Context(), conversation.Info{ID: id, Title: id})
		h.must(err)
	}
	h.w, err = db.Checkpoints().Open(t.Context(), dir)
	h.must(err)
	for n := range 60 {
		h.step(n + 1)
	}
	h.must(h.w.Close())
	handler, err := server.New(db, &server.Options{Token: "secret"})
	h.must(err)
	web := httptest.NewServer(handler)
	pages := []string{pageHistory(t, web, "one"), pageHistory(t, web, "two")}
	web.Close()
	h.must(db.Close())
	for i, conv := range []string{"one", "two"} {
		if got := logHistory(t, store, dir, conv); got != pages[i] {
			t.Errorf("conversation %s: the log has\n%s\nthe page has\n%s", conv, got, pages[i])
		}
	}
}

// agreedLine is what both say about an entry.
func agreedLine(id, kind string, pins []string, gone bool, at any, continues string, branch int, current bool) string {
	return fmt.Sprintln(id, kind, pins, "gone", gone, at, "continues", continues, "branch", branch, "current", current)
}

func logHistory(t *testing.T, store, dir, conv string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main([]string{"--store", store, "-C", dir, "log", conv, "--json"}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	var text strings.Builder
	for dec := json.NewDecoder(&out); dec.More(); {
		var e logJSON
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		text.WriteString(agreedLine(e.ID, e.Kind, e.Pins, e.Rewound, e.RewoundAt, e.Continues, e.Branch, e.Current))
		if e.Forgotten > 0 {
			fmt.Fprintf(&text, "%d gone\n", e.Forgotten)
		}
	}
	return text.String()
}

func pageHistory(t *testing.T, web *httptest.Server, conv string) string {
	t.Helper()
	ctx, info := connect.NewClientContext(t.Context())
	info.RequestHeader().Set("Authorization", "Bearer secret")
	res, err := stetv1connect.NewPageServiceClient(web.Client(), web.URL).Timeline(ctx, &stetv1.TimelineRequest{Conversation: conv})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range res.GetEntries() {
		c := e.GetCheckpoint()
		if c.GetKind() == "forgotten" {
			n, _, _ := strings.Cut(c.GetLabel(), " ")
			fmt.Fprintf(&text, "%s gone\n", n)
			continue
		}
		at := ""
		if e.GetGone() {
			at = stamp(time.UnixMilli(e.GetGoneMs()))
		}
		text.WriteString(agreedLine(c.GetId(), c.GetKind(), c.GetPins(), e.GetGone(), at, e.GetContinues(), int(e.GetBranch()), e.GetCurrent()))
	}
	return text.String()
}
