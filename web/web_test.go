package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/web"
)

// get returns the status and body of a page.
func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec.Code, rec.Body.String()
}

func TestPages(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pages := web.Handler(db)
	if code, body := get(t, pages, "/"); code != 200 || !strings.Contains(body, "stet demo") {
		t.Errorf("empty home: %d\n%s", code, body)
	}
	c, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "c1", Title: "<script>alert(1)</script>", Agent: "scripted"})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "hello <img src=x onerror=alert(2)> \x1b[31mred", MessageId: "m1"},
		&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: "the answer"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AppendTurn(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	code, body := get(t, pages, "/")
	if code != 200 || !strings.Contains(body, `href="/c/c1"`) || strings.Contains(body, "<script>alert") {
		t.Errorf("home: %d\n%s", code, body)
	}
	code, body = get(t, pages, "/c/c1")
	if code != 200 || !strings.Contains(body, "the answer") {
		t.Errorf("conversation: %d\n%s", code, body)
	}
	for _, hostile := range []string{"<img src=x", "\x1b[31m", "<script>alert"} {
		if strings.Contains(body, hostile) {
			t.Errorf("the page shows %q as it is", hostile)
		}
	}
	if code, _ := get(t, pages, "/c/none"); code != 404 {
		t.Errorf("missing conversation: %d", code)
	}
	if code, body := get(t, web.Assets(), "/assets/page.css"); code != 200 || !strings.Contains(body, "prefers-color-scheme") {
		t.Errorf("style: %d", code)
	}
}
