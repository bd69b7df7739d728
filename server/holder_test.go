package server_test

import (
	"os"
	"runtime"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server"
)

// A caller on the server's machine names the process that a turn ends with.
func TestATurnIsHeldByAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes cannot be identified")
	}
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b := newBenchAt(t, http, base)
	create := func(side stetv1.Side, turn, pid uint32) error {
		_, err := b.checkpoints.Create(t.Context(), connect.NewRequest(&stetv1.CreateCheckpointRequest{
			Workspace: b.dir, Conversation: "held", Turn: turn, Side: side, Author: "agent", Pid: pid,
		}))
		return err
	}
	if err := create(checkpoint.Before, 1, uint32(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	w, err := db.Checkpoints().Open(t.Context(), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	open, err := w.AtWork(t.Context())
	if err != nil || len(open) != 1 || len(open[0].Holder.Processes) != 1 || open[0].Holder.Processes[0].PID != os.Getpid() {
		t.Errorf("at work: %v, %v", open, err)
	}
	for want, err := range map[connect.Code]error{
		connect.CodeInvalidArgument: create(checkpoint.After, 1, uint32(os.Getpid())),
		connect.CodeNotFound:        create(checkpoint.Before, 2, 1<<31-1),
	} {
		if connect.CodeOf(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
