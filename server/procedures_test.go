package server

import (
	"testing"

	"github.com/stet-dev/stet/access"
)

// A new procedure needs a decision about its callers.
func TestEveryProcedureHasAScope(t *testing.T) {
	all := procedures(services)
	if len(all) < 50 {
		t.Fatalf("only %d procedures were found", len(all))
	}
	for procedure := range all {
		if s, ok := scopes[procedure]; !ok || !s.Allows(access.Read) {
			t.Errorf("%s is missing in scopes", procedure)
		}
	}
	for procedure := range scopes {
		if all[procedure] == nil {
			t.Errorf("%s has a scope and is not served", procedure)
		}
	}
	for procedure := range endless {
		if m := all[procedure]; m == nil || !m.IsStreamingServer() {
			t.Errorf("%s is no stream", procedure)
		}
	}
}

// What only looks says so in its definition, so that it can be fetched by GET; no
// GET may need more than Read, since a link is enough to send one.
func TestWhatHasNoSideEffectsOnlyReads(t *testing.T) {
	for procedure, m := range procedures(services) {
		if noSideEffects(m) && scopeOf(procedure) != access.Read {
			t.Errorf("%s has no side effects, but needs %v", procedure, scopeOf(procedure))
		}
	}
	if scopeOf("/nobody.v1.Knows/This") != access.Admin {
		t.Error("what is not listed must need the highest scope")
	}
}
