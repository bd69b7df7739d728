package server_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

func data(s string) *stetv1.FrameValue {
	return &stetv1.FrameValue{Type: "json", Content: &stetv1.FrameValue_Data{Data: []byte(s)}}
}

// Large values go by BlobService, in both directions, and pages end before a message is
// too large.
func TestThreads(t *testing.T) {
	http, base := dial(t, start(t, nil), token).HTTP()
	threads := stetv1connect.NewThreadServiceClient(http, base)
	blobs := stetv1connect.NewBlobServiceClient(http, base)
	large := bytes.Repeat([]byte("large "), 500_000)
	id := blob.Sum(large)
	stream, err := blobs.PutStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for chunk := range slices.Chunk(large, 1<<20) {
		if err := stream.Send(&stetv1.PutBlobStreamRequest{Id: id.Bytes(), Size: int64(len(large)), Chunk: chunk}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	const n = 5
	for i := range n {
		key := &stetv1.FrameKey{Thread: "t", Id: fmt.Sprint(i)}
		put := &stetv1.PutFrameRequest{
			Key: key, Body: data("{}"), Metadata: []byte(`{"run_id": "r` + fmt.Sprint(i) + `"}`),
			Versions: map[string]string{"large": "1", "middle": fmt.Sprint(i)},
			Values:   map[string]*stetv1.FrameValue{"middle": data(strings.Repeat(fmt.Sprint(i), 900_000))},
		}
		if i == 0 {
			put.Values["large"] = &stetv1.FrameValue{Type: "json", Content: &stetv1.FrameValue_Blob{Blob: id.Bytes()}}
		} else {
			put.Parent = fmt.Sprint(i - 1)
		}
		call(t, threads.Put, put)
		call(t, threads.PutWrites, &stetv1.PutWritesRequest{Key: key, Task: "task", Writes: []*stetv1.FrameWrite{{Channel: "x", Value: data("1")}}})
	}
	got := call(t, threads.Get, &stetv1.GetFrameRequest{Key: &stetv1.FrameKey{Thread: "t"}}).GetFrame()
	if got.GetKey().GetId() != "4" || !bytes.Equal(got.GetChannels()["large"].GetValue().GetBlob(), id.Bytes()) || len(got.GetChannels()["middle"].GetValue().GetData()) != 900_000 || len(got.GetWrites()) != 1 {
		t.Errorf("frame %s, channels %d, writes %d", got.GetKey(), len(got.GetChannels()), len(got.GetWrites()))
	}
	var ids []string
	pages := 0
	for cursor := ""; ; pages++ {
		res := call(t, threads.List, &stetv1.ListFramesRequest{Thread: "t", Page: &stetv1.Page{Cursor: cursor}})
		for _, f := range res.GetFrames() {
			ids = append(ids, f.GetKey().GetId())
		}
		if cursor = res.GetNextCursor(); cursor == "" {
			break
		}
	}
	if strings.Join(ids, "") != "43210" || pages == 0 {
		t.Errorf("frames %q in %d further pages", ids, pages)
	}
	if res := call(t, threads.Copy, &stetv1.CopyThreadRequest{From: "t", To: "u"}); res.GetFrames() != n {
		t.Errorf("%d frames copied", res.GetFrames())
	}
	if res := call(t, threads.DeleteRuns, &stetv1.DeleteRunsRequest{Runs: []string{"r1"}}); res.GetFrames() != 2 {
		t.Errorf("%d frames of a run removed", res.GetFrames())
	}
	if res := call(t, threads.Prune, &stetv1.PruneThreadsRequest{Threads: []string{"t"}}); res.GetFrames() != n-2 {
		t.Errorf("%d frames pruned", res.GetFrames())
	}
	call(t, threads.Delete, &stetv1.DeleteThreadRequest{Thread: "u"})
	if res := call(t, threads.Threads, &stetv1.ListThreadsRequest{}); strings.Join(res.GetThreads(), " ") != "t" {
		t.Errorf("threads %q", res.GetThreads())
	}
	for name, c := range map[string]func() error{
		"a cursor of another list": func() error {
			_, err := threads.List(t.Context(), &stetv1.ListFramesRequest{Page: &stetv1.Page{Cursor: "x"}})
			return err
		},
		"an id of 31 bytes": func() error {
			_, err := threads.Put(t.Context(), &stetv1.PutFrameRequest{Key: &stetv1.FrameKey{Thread: "t", Id: "9"}, Body: &stetv1.FrameValue{Content: &stetv1.FrameValue_Blob{Blob: make([]byte, 31)}}})
			return err
		},
		"no thread": func() error {
			_, err := threads.Get(t.Context(), &stetv1.GetFrameRequest{})
			return err
		},
	} {
		if err := c(); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := threads.Get(t.Context(), &stetv1.GetFrameRequest{Key: &stetv1.FrameKey{Thread: "none"}}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a thread without frames: %v", err)
	}
}
