package scenario

import (
	"encoding/json"
	"strings"
	"testing"
)

// newToken creates a token for a tenant and returns it.
func (l *laptop) newToken(tenant, scope string) string {
	l.t.Helper()
	out, _ := l.run(0, "tokens", "create", tenant, "--scope", scope, "--json")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Token == "" {
		l.t.Fatalf("tokens create: %q, %v", out, err)
	}
	return made.Token
}

// TestPushNeedsTheWriteScope moves conversations to a server of tenants and back, with no
// more rights than that takes.
func TestPushNeedsTheWriteScope(t *testing.T) {
	host := newLaptop(t)
	write, read, other := host.newToken("shop", "write"), host.newToken("shop", "read"), host.newToken("other", "admin")
	address, _ := host.serve("127.0.0.1:0", "--mode", "server")
	one := newLaptop(t, "STET_TOKEN="+write)
	one.run(0, "demo", "shop")
	out, _ := one.run(0, "ls", "--json")
	var talk struct{ ID, Root string }
	if err := json.Unmarshal([]byte(out), &talk); err != nil {
		t.Fatal(err)
	}
	reader := newLaptop(t, "STET_TOKEN="+read)
	if _, said := one.run(0, "push", address, talk.ID); strings.Contains(said, "denied") {
		t.Errorf("push: %s", said)
	}
	if out, _ := one.run(0, "push", address); !strings.Contains(out, "current") || !strings.Contains(out, "copied 0 blobs") {
		t.Errorf("push again: %s", out)
	}
	one.run(0, "push", address, "--dry-run")
	if out, _ := reader.run(0, "pull", address); !strings.Contains(out, "created") {
		t.Errorf("pull: %s", out)
	}
	if out, _ := reader.run(0, "ls", "--json"); !strings.Contains(out, talk.Root) {
		t.Errorf("pulled %s, want the root %s", out, talk.Root)
	}
	if out, _ := reader.run(0, "pull", address, talk.ID); !strings.Contains(out, "current") || !strings.Contains(out, "copied 0 blobs") {
		t.Errorf("pull again: %s", out)
	}
	reader.run(0, "fsck", "--read-data")
	reader.run(0, "demo", "another")
	cmd := reader.cmd("push", address)
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "scope write is required") {
		t.Errorf("push with a read token: %v\n%s", err, said)
	}
	stranger := newLaptop(t, "STET_TOKEN="+other)
	stranger.run(3, "pull", address, talk.ID)
	if out, _ := stranger.run(0, "pull", address); strings.Contains(out, talk.ID) {
		t.Errorf("another tenant pulls %s", out)
	}
}
