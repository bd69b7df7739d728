// Package web is the page of a stet server: what was said and done, to read in a
// browser.
//
// Pages are made on the server from escaped templates and work without scripts
// and without the network; the one script only turns the token behind the # of
// the address into a cookie. Transcripts are hostile input: they are shown as
// text. Who may see the pages is left to package server.
package web

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/transcript"
)

//go:embed assets
var files embed.FS

//go:embed *.html
var sources embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"when": when, "stamp": stamp, "visible": transcript.Visible, "pretty": pretty,
}).ParseFS(sources, "*.html"))

// pageTurns is how many turns of a conversation one page shows.
const pageTurns = 100

// Handler serves the pages of a store.
func Handler(db *stet.DB) http.Handler {
	h := &handler{db: db}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.home)
	mux.HandleFunc("GET /c/{id}", h.conversation)
	return mux
}

// Login serves the page for those who have not shown their token.
func Login() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		render(w, http.StatusUnauthorized, "login.html", nil)
	})
}

// Assets serves styles and scripts, which hold nothing of anybody's.
func Assets() http.Handler {
	sub, err := fs.Sub(files, "assets")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return http.StripPrefix("/assets/", http.FileServerFS(sub))
}

type handler struct{ db *stet.DB }

func (h *handler) home(w http.ResponseWriter, r *http.Request) {
	page, err := h.db.Conversations().List(r.Context(), &conversation.ListOptions{Cursor: r.URL.Query().Get("after")})
	if err != nil {
		h.fail(w, err)
		return
	}
	render(w, http.StatusOK, "home.html", page)
}

// conversationPage is what the template of a conversation shows.
type conversationPage struct {
	Info        conversation.Info
	Messages    []transcript.Message
	Checkpoints []checkpointLine
	First, Last int // turns shown, from 1
	Older, Next int // where the neighbouring pages begin, -1 for none
}

type checkpointLine struct {
	Name, ID, Label, Author string
	Time                    time.Time
	Turn                    int
	Files, Added, Removed   int
}

func (h *handler) conversation(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	info, err := h.db.Conversations().Get(ctx, r.PathValue("id"))
	if err != nil {
		h.fail(w, err)
		return
	}
	p := &conversationPage{Info: info, Older: -1, Next: -1}
	if err := p.read(ctx, h.db, r.URL.Query().Get("from")); err != nil {
		h.fail(w, err)
		return
	}
	render(w, http.StatusOK, "conversation.html", p)
}

// read fills a page: the last turns, or those from the number that was asked for.
func (p *conversationPage) read(ctx context.Context, db *stet.DB, asked string) error {
	t, err := transcript.New(db.Conversations(), db.Blobs()).Conversation(ctx, p.Info.ID)
	if err != nil {
		return err
	}
	from := max(0, t.Turns()-pageTurns)
	if n, err := strconv.Atoi(asked); err == nil {
		from = min(max(n, 0), t.Turns())
	}
	to := min(from+pageTurns, t.Turns())
	p.First, p.Last = from+1, to
	if from > 0 {
		p.Older = max(0, from-pageTurns)
	}
	if to < t.Turns() {
		p.Next = to
	}
	for m, err := range t.Messages(ctx, &transcript.Options{TurnFrom: from, TurnTo: to, WithoutHeavyOutput: true, Lenient: true}) {
		if err != nil {
			return err
		}
		p.Messages = append(p.Messages, m)
	}
	for rec, err := range db.Checkpoints().ListConversation(ctx, p.Info.ID) {
		if err != nil {
			return err
		}
		j := rec.JSON()
		p.Checkpoints = append(p.Checkpoints, checkpointLine{
			Name: rec.Name(), ID: j.ID, Label: j.Label, Author: j.Author, Time: rec.Time, Turn: int(j.Turn),
			Files: int(j.FilesChanged), Added: int(j.LinesAdded), Removed: int(j.LinesRemoved),
		})
	}
	return nil
}

// fail shows an error without what only the machine's owner should know.
func (h *handler) fail(w http.ResponseWriter, err error) {
	status, text := http.StatusInternalServerError, "This could not be read. See the server's log."
	switch {
	case errors.Is(err, conversation.ErrNotFound):
		status, text = http.StatusNotFound, "There is no such conversation."
	case errors.Is(err, conversation.ErrInvalid):
		status, text = http.StatusBadRequest, "That address is not one of this server's."
	case errors.Is(err, conversation.ErrDataLoss):
		text = "A part of this conversation is lost or damaged. Run stet fsck to see what."
	}
	render(w, status, "error.html", text)
}

// render makes the whole page before it sends the first byte, so that an error
// never leaves half a page.
func render(w http.ResponseWriter, status int, name string, data any) {
	var page bytes.Buffer
	if err := pages.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(page.Bytes())
}

func when(t time.Time) string {
	switch age := time.Since(t); {
	case t.IsZero():
		return ""
	case age < time.Minute:
		return "just now"
	case age < time.Hour:
		return strconv.Itoa(int(age.Minutes())) + " min ago"
	case age < 24*time.Hour:
		return strconv.Itoa(int(age.Hours())) + " h ago"
	}
	return t.Local().Format("2 Jan 2006")
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func pretty(value any) string {
	if value == nil {
		return ""
	}
	out, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return ""
	}
	return string(out)
}
