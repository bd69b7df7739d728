package server

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/thread"
)

// maxFrame limits the bytes of content in a frame of an answer. Callers read larger
// content with BlobService.
const maxFrame = wire.MaxMessage / 4

// threadService is stet.v1.ThreadService.
type threadService struct{ threads *thread.Store }

func (s *threadService) Put(ctx context.Context, req *stetv1.PutFrameRequest) (*stetv1.PutFrameResponse, error) {
	f := thread.NewFrame{Key: frameKey(req.GetKey()), Parent: req.GetParent(), Metadata: req.GetMetadata(), Versions: req.GetVersions(), Values: make(map[string]thread.Value, len(req.GetValues()))}
	var err error
	if f.Body, err = frameValue(req.GetBody()); err != nil {
		return nil, err
	}
	for name, v := range req.GetValues() {
		if f.Values[name], err = frameValue(v); err != nil {
			return nil, err
		}
	}
	return &stetv1.PutFrameResponse{}, s.threads.Put(ctx, f)
}

func (s *threadService) PutWrites(ctx context.Context, req *stetv1.PutWritesRequest) (*stetv1.PutWritesResponse, error) {
	var writes []thread.Write
	for _, w := range req.GetWrites() {
		value, err := frameValue(w.GetValue())
		if err != nil {
			return nil, err
		}
		writes = append(writes, thread.Write{Index: w.GetIndex(), Channel: w.GetChannel(), Value: value})
	}
	err := s.threads.PutWrites(ctx, frameKey(req.GetKey()), req.GetTask(), req.GetPath(), writes)
	return &stetv1.PutWritesResponse{}, err
}

func (s *threadService) Get(ctx context.Context, req *stetv1.GetFrameRequest) (*stetv1.GetFrameResponse, error) {
	f, err := s.threads.Get(ctx, frameKey(req.GetKey()))
	if err != nil {
		return nil, err
	}
	return &stetv1.GetFrameResponse{Frame: wireFrame(f)}, nil
}

func (s *threadService) List(ctx context.Context, req *stetv1.ListFramesRequest) (*stetv1.ListFramesResponse, error) {
	q := thread.Query{Thread: req.GetThread(), Namespace: req.Namespace, Before: req.GetBefore(), Filter: req.GetFilter()}
	var err error
	if q.After, err = parseFrameCursor(req.GetPage().GetCursor()); err != nil {
		return nil, err
	}
	res := &stetv1.ListFramesResponse{}
	limit, size := wire.PageSize(req.GetPage().GetLimit()), 0
	var last thread.Key
	for f, err := range s.threads.List(ctx, q) {
		if err != nil && f.Key == (thread.Key{}) {
			return nil, err
		}
		if len(res.Frames)+len(res.Damaged) == limit || size > wire.MaxMessage/2 {
			res.NextCursor = frameCursor(last)
			break
		}
		if last = f.Key; err != nil {
			res.Damaged = append(res.Damaged, &stetv1.Unreadable{Id: wire.Valid(f.Key.String()), Detail: wire.Valid(err.Error())})
			continue
		}
		frame := wireFrame(f)
		size += proto.Size(frame)
		res.Frames = append(res.Frames, frame)
	}
	return res, nil
}

func (s *threadService) Threads(ctx context.Context, req *stetv1.ListThreadsRequest) (*stetv1.ListThreadsResponse, error) {
	limit := wire.PageSize(req.GetPage().GetLimit())
	threads, err := s.threads.Threads(ctx, req.GetPage().GetCursor(), limit)
	if err != nil {
		return nil, err
	}
	res := &stetv1.ListThreadsResponse{Threads: threads}
	if len(threads) == limit {
		res.NextCursor = threads[limit-1]
	}
	return res, nil
}

func (s *threadService) Delete(ctx context.Context, req *stetv1.DeleteThreadRequest) (*stetv1.DeleteThreadResponse, error) {
	return &stetv1.DeleteThreadResponse{}, s.threads.Delete(ctx, req.GetThread())
}

func (s *threadService) Copy(ctx context.Context, req *stetv1.CopyThreadRequest) (*stetv1.CopyThreadResponse, error) {
	n, err := s.threads.Copy(ctx, req.GetFrom(), req.GetTo())
	return &stetv1.CopyThreadResponse{Frames: uint64(n)}, err
}

func (s *threadService) Prune(ctx context.Context, req *stetv1.PruneThreadsRequest) (*stetv1.PruneThreadsResponse, error) {
	res := &stetv1.PruneThreadsResponse{}
	for _, id := range req.GetThreads() {
		n, err := s.threads.Prune(ctx, id)
		if res.Frames += uint64(n); err != nil {
			return nil, err
		}
	}
	return res, nil
}

func (s *threadService) DeleteRuns(ctx context.Context, req *stetv1.DeleteRunsRequest) (*stetv1.DeleteRunsResponse, error) {
	n, err := s.threads.DeleteRuns(ctx, req.GetRuns())
	return &stetv1.DeleteRunsResponse{Frames: uint64(n)}, err
}

func frameKey(k *stetv1.FrameKey) thread.Key {
	return thread.Key{Thread: k.GetThread(), Namespace: k.GetNamespace(), ID: k.GetId()}
}

func frameValue(v *stetv1.FrameValue) (thread.Value, error) {
	if of, ok := v.GetContent().(*stetv1.FrameValue_Blob); ok {
		id, err := contentID(of.Blob)
		return thread.Value{Type: v.GetType(), Blob: id}, err
	}
	return thread.Value{Type: v.GetType(), Data: append([]byte{}, v.GetData()...)}, nil
}

// contentID reads the id of a blob that is content. It rejects the zero id, which no
// blob has: the packages below read it as "no blob" and would store empty content.
func contentID(raw []byte) (blob.ID, error) {
	id, err := blob.IDFromBytes(raw)
	if err == nil && id.IsZero() {
		err = blob.NotFound(id)
	}
	return id, err
}

func wireFrame(f thread.Frame) *stetv1.Frame {
	out := &stetv1.Frame{
		Key:    &stetv1.FrameKey{Thread: f.Thread, Namespace: f.Namespace, Id: f.ID},
		Parent: f.Parent, CreatedMs: f.Created.UnixMilli(), Metadata: f.Metadata, Body: wireValue(f.Body),
		Channels: make(map[string]*stetv1.FrameChannel, len(f.Channels)),
	}
	for name, c := range f.Channels {
		out.Channels[name] = &stetv1.FrameChannel{Version: c.Version, Value: wireValue(c.Value)}
	}
	for _, w := range f.Writes {
		out.Writes = append(out.Writes, &stetv1.FrameWrite{Task: w.Task, Path: w.Path, Index: w.Index, Channel: w.Channel, Value: wireValue(w.Value)})
	}
	return out
}

func wireValue(v thread.Value) *stetv1.FrameValue {
	if v.Data == nil && !v.Blob.IsZero() {
		return &stetv1.FrameValue{Type: v.Type, Content: &stetv1.FrameValue_Blob{Blob: v.Blob.Bytes()}}
	}
	return &stetv1.FrameValue{Type: v.Type, Content: &stetv1.FrameValue_Data{Data: v.Data}}
}

// frameCursor is a place in a list of frames. No part holds a control character.
func frameCursor(k thread.Key) string {
	return strings.Join([]string{k.ID, k.Thread, k.Namespace}, "\n")
}

func parseFrameCursor(cursor string) (thread.Key, error) {
	if cursor == "" {
		return thread.Key{}, nil
	}
	parts := strings.Split(cursor, "\n")
	if len(parts) != 3 {
		return thread.Key{}, errCursor()
	}
	return thread.Key{ID: parts[0], Thread: parts[1], Namespace: parts[2]}, nil
}
