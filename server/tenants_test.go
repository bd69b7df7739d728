package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server"
)

// house is a server of tenants.
type house struct {
	t       *testing.T
	dir     string
	address string
	tokens  *access.Tokens
	stores  *watched
}

// watched tells which stores were opened.
type watched struct {
	server.DirTenants
	mu     sync.Mutex // guards opened
	opened []string
}

func (w *watched) Open(ctx context.Context, tenant string) (*stet.DB, error) {
	w.mu.Lock()
	w.opened = append(w.opened, tenant)
	w.mu.Unlock()
	return w.DirTenants.Open(ctx, tenant)
}

// take returns which stores were opened since the last time.
func (w *watched) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	opened := w.opened
	w.opened = nil
	return opened
}

func newHouse(t *testing.T, opts *server.Options) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir()}
	h.tokens = access.OpenTokens(filepath.Join(h.dir, access.TokensName))
	h.stores = &watched{DirTenants: server.DirTenants{Dir: h.dir}}
	srv, err := server.NewTenants(h.stores, h.tokens.Verify, opts)
	if err != nil {
		t.Fatal(err)
	}
	h.address = serve(t, srv)
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

// serve answers on a loopback port until the test ends.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}

func (h *house) token(tenant string, scope access.Scope) string {
	h.t.Helper()
	token, _, err := h.tokens.Create(access.Grant{Tenant: tenant, Scope: scope})
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

func (h *house) client(tenant string, scope access.Scope) *client.Client {
	h.t.Helper()
	return dial(h.t, h.address, h.token(tenant, scope))
}

// answer is what a caller sees of a call.
type answer struct {
	status int
	header string
	body   string
}

// ask makes a call with JSON and returns everything that comes back but the date
// and the request's id.
func (h *house) ask(token, procedure, body string) answer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), "POST", h.address+procedure, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	res.Header.Del("Date")
	res.Header.Del("X-Request-Id")
	var header bytes.Buffer
	if err := res.Header.Write(&header); err != nil {
		h.t.Fatal(err)
	}
	return answer{res.StatusCode, header.String(), string(data)}
}

// What another tenant has is for a tenant exactly what nobody has: the same
// answer, by the same way, and the other's store is not even opened.
func TestNothingOfOtherTenantsShows(t *testing.T) {
	h := newHouse(t, nil)
	ctx := t.Context()
	a := h.client("a", access.Admin)
	secret := blob.New([]byte("what only a knows"))
	if err := a.Blobs().Put(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if err := a.Blobs().Flush(ctx); err != nil {
		t.Fatal(err)
	}
	ahttp, base := a.HTTP()
	conv := call(t, stetv1connect.NewConversationServiceClient(ahttp, base).Create, &stetv1.CreateConversationRequest{Id: "conv-of-a", Title: "secret"}).GetConversation()
	call(t, stetv1connect.NewCloudAgentServiceClient(ahttp, base).Create, &stetv1.CreateAgentRequest{Id: "agent-of-a"})
	call(t, stetv1connect.NewThreadServiceClient(ahttp, base).Put, &stetv1.PutFrameRequest{Key: &stetv1.FrameKey{Thread: "thread-of-a", Id: "1"}})
	call(t, stetv1connect.NewDocumentServiceClient(ahttp, base).Commit, &stetv1.CommitDocumentsRequest{
		Collection: "docs-of-a", Changes: []*stetv1.DocumentChange{setDocument("x", "secret")},
	})
	if err := a.Rows().Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: "row-of-a", Value: []byte("secret")}}}); err != nil {
		t.Fatal(err)
	}
	nobody := blob.New([]byte("what nobody knows"))

	b := h.token("b", access.Admin)
	h.ask(b, "/stet.v1.StoreService/Info", "{}")
	h.stores.take()
	const some, none = "SOMETHING", "NOTHING"
	for _, test := range []struct{ procedure, body, theirs, absent string }{
		{"/stet.v1.BlobService/Get", `{"id":"` + some + `"}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/stet.v1.BlobService/Has", `{"ids":["` + some + `"]}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/stet.v1.ConversationService/Inspect", `{"id":"` + some + `"}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/stet.v1.ConversationService/Transcript", `{"root":"` + some + `"}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/stet.v1.ConversationService/Get", `{"id":"` + some + `"}`, conv.GetId(), "conv-of-x"},
		{"/stet.v1.ConversationService/Delete", `{"id":"` + some + `"}`, conv.GetId(), "conv-of-x"},
		{"/stet.v1.ConversationService/History", `{"id":"` + some + `"}`, conv.GetId(), "conv-of-x"},
		{"/stet.v1.ConversationService/Save", `{"id":"` + some + `","root":"` + base64ID(secret.ID) + `"}`, conv.GetId(), "conv-of-x"},
		{"/stet.v1.CloudAgentService/Get", `{"id":"` + some + `"}`, "agent-of-a", "agent-of-x"},
		{"/stet.v1.ThreadService/Get", `{"key":{"thread":"` + some + `"}}`, "thread-of-a", "thread-of-x"},
		{"/stet.v1.ThreadService/List", `{"thread":"` + some + `"}`, "thread-of-a", "thread-of-x"},
		{"/stet.v1.ThreadService/Put", `{"key":{"thread":"t","id":"1"},"body":{"blob":"` + some + `"}}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/stet.v1.ThreadService/Threads", `{}`, "", ""},
		{"/stet.v1.DocumentService/Get", `{"collection":"` + some + `","names":["x"]}`, "docs-of-a", "docs-of-x"},
		{"/stet.v1.DocumentService/List", `{"collection":"` + some + `"}`, "docs-of-a", "docs-of-x"},
		{"/stet.v1.DocumentService/Commit", `{"collection":"c","changes":[{"name":"x","set":{"blob":"` + some + `"}}]}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/stet.v1.DocumentService/Collections", `{}`, "", ""},
		{"/aiserver.v1.BackgroundComposerService/GetBlobForAgentKV", `{"bcId":"agent-of-b","blobId":"` + some + `"}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/aiserver.v1.BackgroundComposerService/GetLatestAgentConversationState", `{"bcId":"` + some + `"}`, "agent-of-a", "agent-of-x"},
		{"/stet.v1.RowService/Get", `{"key":"` + some + `"}`, base64Text("row-of-a"), base64Text("row-of-x")},
		{"/stet.v1.RowService/Commit", `{"refs":["` + some + `"],"set":[{"key":"eA==","value":"eA=="}]}`, base64ID(secret.ID), base64ID(nobody.ID)},
		{"/stet.v1.BlobService/List", `{}`, "", ""},
		{"/stet.v1.RowService/Scan", `{}`, "", ""},
	} {
		theirs := h.ask(b, test.procedure, strings.ReplaceAll(test.body, some, test.theirs))
		absent := h.ask(b, test.procedure, strings.ReplaceAll(test.body, some, test.absent))
		hide := strings.NewReplacer(
			secret.ID.String(), none, nobody.ID.String(), none, base64ID(secret.ID), none, base64ID(nobody.ID), none,
			"-of-a", none, "-of-x", none,
		)
		theirs.body, absent.body = hide.Replace(theirs.body), hide.Replace(absent.body)
		// The ids of missing blobs come back as detail, in base64.
		commits := test.procedure == "/stet.v1.RowService/Commit" || test.procedure == "/stet.v1.ThreadService/Put"
		if !commits && theirs != absent || theirs.status != absent.status || len(theirs.body) != len(absent.body) {
			t.Errorf("%s\n theirs %+v\n absent %+v", test.procedure, theirs, absent)
		}
		if strings.Contains(theirs.body, "what only a knows") || strings.Contains(theirs.body, "secret") {
			t.Errorf("%s shows %s", test.procedure, theirs.body)
		}
	}
	if opened := h.stores.take(); len(opened) != 0 {
		t.Errorf("stores were opened: %v", opened)
	}
	if data, err := a.Blobs().Get(ctx, secret.ID); err != nil || string(data) != "what only a knows" {
		t.Errorf("a's blob: %q, %v", data, err)
	}
}

func base64ID(id blob.ID) string { return base64Text(string(id.Bytes())) }

func base64Text(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// A tenant that never came leaves no trace, and knowing its name is of no use.
func TestOneStoreForEachTenant(t *testing.T) {
	h := newHouse(t, nil)
	ctx := t.Context()
	same := blob.New([]byte("the same bytes"))
	for _, tenant := range []string{"a", "b"} {
		c := h.client(tenant, access.Write)
		if has, err := c.Blobs().Has(ctx, same.ID); err != nil || has[0] {
			t.Errorf("%s has it before it came: %v, %v", tenant, has, err)
		}
		if err := c.Blobs().Put(ctx, same); err != nil {
			t.Fatal(err)
		}
		if err := c.Blobs().Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(h.dir, server.TenantsName))
	if err != nil || len(entries) != 2 || entries[0].Name() != "a" || entries[1].Name() != "b" {
		t.Errorf("directories %v, %v", entries, err)
	}
}

func TestScopesOverTheWire(t *testing.T) {
	h := newHouse(t, nil)
	type attempt struct {
		name   string
		needed access.Scope
		do     func(ctx context.Context, c *http.Client, opts ...connect.ClientOption) error
	}
	attempts := []attempt{
		{"list conversations", access.Read, func(ctx context.Context, c *http.Client, opts ...connect.ClientOption) error {
			_, err := stetv1connect.NewConversationServiceClient(c, h.address, opts...).List(ctx, &stetv1.ListConversationsRequest{})
			return err
		}},
		{"create a conversation", access.Write, func(ctx context.Context, c *http.Client, opts ...connect.ClientOption) error {
			_, err := stetv1connect.NewConversationServiceClient(c, h.address, opts...).Create(ctx, &stetv1.CreateConversationRequest{})
			return err
		}},
		{"collect", access.Admin, func(ctx context.Context, c *http.Client, opts ...connect.ClientOption) error {
			_, err := stetv1connect.NewStoreServiceClient(c, h.address, opts...).Collect(ctx, &stetv1.CollectRequest{DryRun: true})
			return err
		}},
		{"follow an agent that there is not", access.Read, func(ctx context.Context, c *http.Client, opts ...connect.ClientOption) error {
			s, err := aiserverv1connect.NewBackgroundComposerServiceClient(c, h.address, opts...).StreamConversation(ctx, &aiserverv1.StreamConversationRequest{BcId: "x"})
			if err != nil {
				return err
			}
			defer s.Close()
			for s.Receive() {
			}
			if connect.CodeOf(s.Err()) == connect.CodeNotFound {
				return nil // it was let in
			}
			return s.Err()
		}},
		{"check the store", access.Admin, func(ctx context.Context, c *http.Client, opts ...connect.ClientOption) error {
			s, err := stetv1connect.NewStoreServiceClient(c, h.address, opts...).Fsck(ctx, &stetv1.FsckRequest{})
			if err != nil {
				return err
			}
			defer s.Close()
			for s.Receive() {
			}
			return s.Err()
		}},
	}
	protocols := map[string][]connect.ClientOption{
		"connect": nil, "json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
	}
	for _, scope := range []access.Scope{access.Read, access.Write, access.Admin} {
		c, _ := h.client("a", scope).HTTP()
		for name, opts := range protocols {
			for _, a := range attempts {
				err := a.do(t.Context(), c, opts...)
				switch {
				case scope.Allows(a.needed) && err != nil:
					t.Errorf("%s, %s: %s: %v", scope, name, a.name, err)
				case !scope.Allows(a.needed) && (connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), a.needed.String())):
					t.Errorf("%s, %s: %s: %v, want denied", scope, name, a.name, err)
				}
			}
		}
	}
}

func TestTokensOverTheWire(t *testing.T) {
	h := newHouse(t, nil)
	good := h.token("a", access.Read)
	infos, err := h.tokens.List()
	if err != nil {
		t.Fatal(err)
	}
	list := func(token string, opts ...connect.ClientOption) error {
		c, _ := dial(t, h.address, token).HTTP()
		_, err := stetv1connect.NewConversationServiceClient(c, h.address, opts...).List(t.Context(), &stetv1.ListConversationsRequest{})
		return err
	}
	if err := list(good); err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}, {connect.WithProtoJSON()}} {
		for _, bad := range []string{"", "x", good + "x", strings.Repeat("0", 64)} {
			if err := list(bad, opts...); connect.CodeOf(err) != connect.CodeUnauthenticated || bad != "" && strings.Contains(err.Error(), bad) && len(bad) > 1 {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
	if _, err := h.tokens.Revoke(infos[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := list(good); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a revoked token: %v", err)
	}
	if _, err := server.NewTenants(h.stores, nil, nil); err == nil {
		t.Error("a server of tenants without tokens")
	}
}

// A tenant whose store cannot be opened gets an error, and the others go on.
func TestAStoreThatCannotBeOpened(t *testing.T) {
	h := newHouse(t, nil)
	path := filepath.Join(h.dir, server.TenantsName, "broken")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken, fine := h.client("broken", access.Read), h.client("fine", access.Read)
	_, err := broken.Blobs().Has(t.Context(), blob.ID{})
	if err == nil {
		t.Error("a broken store answers")
	}
	if _, err := fine.Blobs().Has(t.Context(), blob.ID{}); err != nil {
		t.Errorf("the other tenant: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := broken.Blobs().Has(t.Context(), blob.ID{}); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
}
