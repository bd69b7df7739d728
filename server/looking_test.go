package server_test

import (
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server"
)

// Calls that a read token allows store nothing of what they look at, and still show
// it.
func TestLookingStoresNothing(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b := newBenchAt(t, http, base)
	secret := "the secret of the user\n"
	b.write("secret.txt", secret)
	b.write("cart.go", "changed by the user\n")

	diff := call(t, b.checkpoints.Diff, &stetv1.DiffRequest{Workspace: b.dir, From: b.after.GetId(), To: "@"})
	var shown []string
	for _, f := range diff.GetFiles() {
		shown = append(shown, f.GetPath())
	}
	if got := strings.Join(shown, " "); got != "cart.go secret.txt" {
		t.Errorf("the diff shows %q", got)
	}
	plan := call(t, b.checkpoints.PlanRewind, &stetv1.PlanRewindRequest{Workspace: b.dir, Ref: b.before.GetId(), Conversation: b.conv, Files: true})
	if plan.GetPlanToken() == "" {
		t.Error("the plan has no token")
	}
	has, err := db.Blobs().Has(t.Context(), blob.Sum([]byte(secret)), blob.Sum([]byte("changed by the user\n")))
	if err != nil || has[0] || has[1] {
		t.Errorf("looking stored what it saw: %v, %v", has, err)
	}
	// What was planned by a look can be carried out.
	call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{
		Plan:      &stetv1.PlanRewindRequest{Workspace: b.dir, Ref: b.before.GetId(), Conversation: b.conv, Files: true, Conflicts: "keep-mine"},
		PlanToken: call(t, b.checkpoints.PlanRewind, &stetv1.PlanRewindRequest{Workspace: b.dir, Ref: b.before.GetId(), Conversation: b.conv, Files: true, Conflicts: "keep-mine"}).GetPlanToken(),
	})
	b.has("secret.txt", secret)
	b.has("lib/price.go", "")
}
