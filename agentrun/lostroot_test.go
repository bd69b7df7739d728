package agentrun_test

import (
	"errors"
	"testing"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
)

// A conversation whose state is lost cannot be continued, and that is data loss.
func TestALostStateIsDataLoss(t *testing.T) {
	mem := memblob.New()
	conv, err := conversation.New(blob.Checked(mem), memkv.New(mem), nil).Create(t.Context(), conversation.Info{ID: "c"})
	must(t, err)
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "hello", MessageId: "m"})
	must(t, err)
	must(t, conv.AppendTurn(t.Context(), turn))
	_, err = conv.Save(t.Context(), nil)
	must(t, err)
	_, err = agentrun.NewHandler(t.Context(), memblob.New(), conv, nil) // a store that has lost it
	var loss *conversation.HydrationError
	if !errors.As(err, &loss) || loss.Conversation != "c" || loss.Source == "" || fault.Of(err) != fault.Damaged {
		t.Errorf("got %v", err)
	}
}
