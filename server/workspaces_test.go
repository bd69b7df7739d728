package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server"
	"google.golang.org/protobuf/proto"
)

// folder makes a directory with a file in it and returns its real path.
func folder(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func TestOnlyListedWorkspacesAreTouched(t *testing.T) {
	base := t.TempDir()
	a, b, outside := folder(t, base, "work", "a"), folder(t, base, "work", "b"), folder(t, base, "outside")
	inner := folder(t, a, "inner")
	link, back := filepath.Join(a, "link"), filepath.Join(base, "back")
	for name, to := range map[string]string{link: outside, back: inner} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	h := newHouse(t, &server.Options{Workspaces: []string{filepath.Join(base, "work", "{tenant}"), "c=" + outside}})
	create := func(tenant string) func(string) error {
		c := h.client(tenant, access.Admin)
		hc, address := c.HTTP()
		checkpoints := stetv1connect.NewCheckpointServiceClient(hc, address)
		return func(dir string) error {
			_, err := checkpoints.Create(t.Context(), &stetv1.CreateCheckpointRequest{Workspace: dir})
			return err
		}
	}
	for _, test := range []struct {
		tenant, dir string
		allowed     bool
	}{
		{"a", a, true},
		{"a", inner, true},
		{"a", back, true}, // a link to where it may
		{"a", a + "/../a/inner", true},
		{"a", b, false},
		{"a", outside, false},
		{"a", link, false},
		{"a", link + "/", false},
		{"a", a + "/../b", false},
		{"a", filepath.Dir(a), false},
		{"a", base + "/none", false},
		{"a", a + "/none", false},
		{"a", "/", false},
		{"a", "/etc", false},
		{"b", b, true},
		{"b", a, false},
		{"c", outside, true},
		{"c", a, false},
		{"nobody", a, false},
	} {
		err := create(test.tenant)(test.dir)
		switch {
		case test.allowed && err != nil:
			t.Errorf("%s: %s: %v", test.tenant, test.dir, err)
		case !test.allowed && connect.CodeOf(err) != connect.CodePermissionDenied:
			t.Errorf("%s: %s: %v, want it denied", test.tenant, test.dir, err)
		}
	}
	// A tenant can write any row, also one that says that it has a workspace there.
	c := h.client("a", access.Admin)
	id := checkpoint.WorkspaceID(outside)
	record, err := proto.Marshal(&stetv1.WorkspaceRecord{Format: 1, Id: id, Path: []byte(outside), Nonce: []byte("abcd")})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Workspace(id), Value: record}}}); err != nil {
		t.Fatal(err)
	}
	if err := create("a")(id); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("by a row that says so: %v", err)
	}
}

func TestWorkspacesByDefault(t *testing.T) {
	dir := folder(t, t.TempDir())
	hc, base := newHouse(t, nil).client("a", access.Admin).HTTP()
	refuse(t, stetv1connect.NewCheckpointServiceClient(hc, base).Create, &stetv1.CreateCheckpointRequest{Workspace: dir}, connect.CodePermissionDenied)
	hc, base = dial(t, start(t, nil), token).HTTP()
	call(t, stetv1connect.NewCheckpointServiceClient(hc, base).Create, &stetv1.CreateCheckpointRequest{Workspace: dir})
	refuse(t, stetv1connect.NewCheckpointServiceClient(hc, base).Create, &stetv1.CreateCheckpointRequest{Workspace: "/"}, connect.CodeInvalidArgument)
	hc, base = dial(t, start(t, &server.Options{Token: token, Workspaces: []string{dir}}), token).HTTP()
	call(t, stetv1connect.NewCheckpointServiceClient(hc, base).Create, &stetv1.CreateCheckpointRequest{Workspace: dir})
	refuse(t, stetv1connect.NewCheckpointServiceClient(hc, base).Create, &stetv1.CreateCheckpointRequest{Workspace: folder(t, t.TempDir())}, connect.CodePermissionDenied)
}

func TestListsThatTenantsWouldShare(t *testing.T) {
	h := newHouse(t, nil)
	for _, bad := range []string{"/srv/work", "relative"} {
		if _, err := server.NewTenants(h.stores, h.tokens.Verify, &server.Options{Workspaces: []string{bad}}); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
