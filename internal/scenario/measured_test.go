package scenario

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/kv/memkv"
)

// TestRunsAreMeasured lets an agent of a server use the blobs of its client, and finds that
// in the metrics of the server under the names of the format.
func TestRunsAreMeasured(t *testing.T) {
	host := newLaptop(t)
	script := filepath.Join(host.dir, "script.json")
	if err := os.WriteFile(script, []byte(`[[{"say":"hello"}]]`), 0o600); err != nil {
		t.Fatal(err)
	}
	address, _ := host.serve("127.0.0.1:0", "--agent", "scripted", "--agent-script", script)
	data, err := os.ReadFile(filepath.Join(host.dir, "store", "token"))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(data))
	c, err := client.New(address, &client.Options{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	runOnce(t, c)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agent_kv_remote_set_blob_duration_ms_count", "agent_kv_remote_flush_duration_ms_count"} {
		found := false
		for line := range strings.SplitSeq(string(text), "\n") {
			found = found || strings.HasPrefix(line, name+"{") && strings.Contains(line, "stet/kvstream")
		}
		if !found {
			t.Errorf("the server does not report %s of the run", name)
		}
	}
}

// runOnce lets the agent of a server work on an empty conversation of this process.
func runOnce(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	mem := memblob.New()
	blobs := blob.Checked(mem)
	conv, err := conversation.New(blobs, memkv.New(mem), nil).Create(ctx, conversation.Info{ID: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := agentrun.NewHandler(ctx, blobs, conv, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools := agentrun.ExecutorFunc(func(context.Context, *agentv1.ExecServerMessage, func(*agentv1.ExecClientMessage)) error {
		return errors.New("no tool is called")
	})
	hc, base := c.HTTP()
	_, err = agentrun.Run(ctx, agentrun.Connect(agentv1connect.NewAgentServiceClient(hc, base)), agentrun.Request{
		Handler: handler, Action: agentrun.Say("hello"), Executor: tools, Backoff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
}
