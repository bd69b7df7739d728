package conversation

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
)

func newTestConversation(t *testing.T) *Conversation {
	t.Helper()
	mem := memblob.New()
	c, err := New(blob.Checked(mem), memkv.New(mem), nil).Create(context.Background(), Info{ID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
