package cloudagent_test

import (
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/kv/memkv"
)

func TestFindAgents(t *testing.T) {
	mem := memblob.New()
	store := cloudagent.New(blob.Checked(mem), memkv.New(mem), nil)
	for id, name := range map[string]string{"agent-a": "build", "agent-b": "test", "other": "test"} {
		if _, err := store.Create(t.Context(), cloudagent.Spec{ID: id, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{"agent-a": "agent-a", "oth": "other", "build": "agent-a"} {
		if a, err := store.Find(t.Context(), text); err != nil || a.ID != want {
			t.Errorf("find %q: %q, %v", text, a.ID, err)
		}
	}
	for _, text := range []string{"agent", "test"} {
		var several *cloudagent.AmbiguousError
		if _, err := store.Find(t.Context(), text); !errors.As(err, &several) || len(several.Candidates) != 2 {
			t.Errorf("find %q: %v", text, err)
		}
	}
	for _, text := range []string{"", "nothing"} {
		if _, err := store.Find(t.Context(), text); !errors.Is(err, cloudagent.ErrNotFound) {
			t.Errorf("find %q: %v", text, err)
		}
	}
}
