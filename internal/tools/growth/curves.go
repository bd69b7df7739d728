package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/populate"
	"github.com/stet-dev/stet/search"
)

func groups() []*group {
	return []*group{
		{
			name: "saves", title: "A save of one turn, by the turns before it", axis: "turns",
			sizes: []int{10, 100, 1000, 10_000, 100_000}, curves: []string{"save a turn", "find the conversation"}, prepare: saves,
		},
		{
			name: "conversations", title: "A store of many conversations", axis: "conversations",
			sizes: []int{100, 1000, 10_000, 100_000, 1_000_000}, curves: []string{"first page of the list", "list of one workspace", "search"}, prepare: conversations,
		},
		{
			name: "files", title: "A workspace of many files", axis: "files",
			sizes: []int{1000, 10_000, 100_000, 1_000_000}, curves: []string{"first checkpoint", "checkpoint, 1 changed", "rewind of 1"}, prepare: files,
			why: map[string]string{"first checkpoint": "is measured once for each size, so other work of the machine disturbs it most. It reads, hashes and stores every file. Its processor time is linear (`BenchmarkFirst` of `checkpoint`: 86 ms for 1,000 files, 767 ms for 10,000); the figure for 10,000 files comes from a busy moment, so do not rely on those in italics.", "checkpoint, 1 changed": "looks at every file of the tree, unless a hint says which ones changed."},
		},
		{
			name: "followers", title: "An append to an agent, by its followers", axis: "followers",
			sizes: []int{1, 10, 100, 1000, 10_000}, curves: []string{"append", "all followers have it"}, prepare: followers,
			why: map[string]string{"all followers have it": "every follower is woken and gives its message away, so this is linear; reading and encoding happen once. The append waits for none of them."},
		},
		{
			name: "store", title: "A store of many bytes", axis: "MiB of content",
			sizes: []int{1, 10, 100, 1000, 10_000, 100_000}, curves: []string{"open the store", "put 64 KiB durably", "get 64 KiB"}, prepare: bytesStored,
		},
	}
}

// timed returns the milliseconds that something takes.
func timed(do func() error) (float64, error) {
	begun := time.Now()
	err := do()
	return float64(time.Since(begun)) / 1e6, err
}

// each measures several things one after another.
func each(do ...func() error) ([]float64, error) {
	costs := make([]float64, len(do))
	for i := range do {
		var err error
		if costs[i], err = timed(do[i]); err != nil {
			return nil, err
		}
	}
	return costs, nil
}

func saves(ctx context.Context, dir string, size int) (func() ([]float64, error), func() error, error) {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	talk, err := db.Conversations().Create(ctx, conversation.Info{ID: "c"})
	if err != nil {
		return nil, db.Close, err
	}
	n := 0
	turn := func() error {
		n++
		var steps []*agentv1.ConversationStep
		for i := range 6 {
			steps = append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
				AssistantMessage: &agentv1.AssistantMessage{Text: fmt.Sprintf("turn %d step %d %x", n, i, blob.Sum(fmt.Append(nil, n, i)))},
			}})
		}
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("turn ", n)}, steps...)
		if err != nil {
			return err
		}
		return talk.AppendTurn(ctx, turn)
	}
	save := func() error {
		_, err := talk.Save(ctx, nil)
		return err
	}
	for n < size {
		if err := turn(); err != nil {
			return nil, db.Close, err
		}
	}
	if err := save(); err != nil {
		return nil, db.Close, err
	}
	return func() ([]float64, error) {
		if err := turn(); err != nil {
			return nil, err
		}
		return each(save, func() error {
			_, err := db.Conversations().Get(ctx, "c")
			return err
		})
	}, db.Close, nil
}

func conversations(ctx context.Context, dir string, size int) (func() ([]float64, error), func() error, error) {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	index, err := db.Search(ctx)
	if err == nil {
		err = populate.Conversations(ctx, db.Conversations(), size)
	}
	if err == nil {
		_, err = index.Update(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	list := func(opts conversation.ListOptions) func() error {
		return func() error {
			_, err := db.Conversations().List(ctx, &opts)
			return err
		}
	}
	return func() ([]float64, error) {
		return each(list(conversation.ListOptions{}), list(conversation.ListOptions{Workspace: populate.Workspace(1)}), func() error {
			if _, err := index.Update(ctx); err != nil {
				return err
			}
			_, err := index.Search(ctx, "number77", &search.SearchOptions{})
			return err
		})
	}, db.Close, nil
}

func files(ctx context.Context, dir string, size int) (func() ([]float64, error), func() error, error) {
	db, err := stet.Open(ctx, filepath.Join(dir, "store"), nil)
	if err != nil {
		return nil, nil, err
	}
	project := filepath.Join(dir, "project")
	write := func(i, version int) error {
		path := filepath.Join(project, fmt.Sprintf("pkg%03d/sub%02d/file_%d.go", i/1600, i/100%16, i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, fmt.Appendf(nil, "package p\n\n// File %d in version %d.\nfunc f%d() {}\n", i, version, i), 0o644)
	}
	for i := range size {
		if err := write(i, 0); err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
	}
	space, err := db.Checkpoints().Open(ctx, project)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	var made *checkpoint.Result
	point := func() (err error) {
		made, err = space.Checkpoint(ctx, checkpoint.Request{})
		return err
	}
	first, err := timed(point)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	version := 0
	return func() ([]float64, error) {
		before := made.Record.ID
		version++
		if err := write(version, version); err != nil {
			return nil, err
		}
		costs, err := each(point, func() error {
			_, err := space.Rewind(ctx, checkpoint.RewindRequest{To: before, Scope: checkpoint.FilesOnly}, "")
			return err
		})
		if err == nil {
			err = point()
		}
		return append([]float64{first}, costs...), err
	}, db.Close, nil
}

func followers(ctx context.Context, dir string, size int) (func() ([]float64, error), func() error, error) {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	if _, err := db.Agents().Create(ctx, cloudagent.Spec{ID: "a"}); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	following, cancel := context.WithCancel(ctx)
	var work, ready sync.WaitGroup
	var got atomic.Int64
	arrived := make(chan struct{}, 1)
	ready.Add(size)
	for range size {
		work.Go(func() {
			here := sync.OnceFunc(ready.Done)
			for m, err := range db.Agents().Messages(following, "a", nil) {
				if err != nil {
					return
				}
				if m.GetInteractionUpdateWithOffset() == nil {
					if m.GetWorkflowStatusWithOffset() != nil {
						here()
					}
					continue
				}
				_, _ = m.Encoded("proto", func() ([]byte, error) { return proto.Marshal(m.StreamConversationResponse) })
				got.Add(1)
				select {
				case arrived <- struct{}{}:
				default:
				}
			}
		})
	}
	ready.Wait()
	want := int64(0)
	update := &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: "a few words of an answer"}}}
	return func() ([]float64, error) {
			begun := time.Now()
			_, err := db.Agents().AppendUpdate(ctx, "a", nil, update)
			appended := float64(time.Since(begun)) / 1e6
			for want += int64(size); err == nil && got.Load() < want; {
				select {
				case <-arrived:
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			return []float64{appended, float64(time.Since(begun)) / 1e6}, err
		}, func() error {
			cancel()
			work.Wait()
			return db.Close()
		}, nil
}

func bytesStored(ctx context.Context, dir string, size int) (func() ([]float64, error), func() error, error) {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	const each64 = 64 << 10
	random := rand.NewChaCha8([32]byte{1})
	var ids []blob.ID
	put := func() error {
		data := make([]byte, each64)
		random.Read(data) // never fails
		b := blob.New(data)
		ids = append(ids, b.ID)
		return db.Blobs().Put(ctx, b)
	}
	for i := range size << 20 / each64 {
		err := put()
		if err == nil && i%256 == 255 {
			err = db.Blobs().Flush(ctx)
		}
		if err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
	}
	return func() ([]float64, error) {
		if err := db.Close(); err != nil {
			return nil, err
		}
		return each(func() (err error) {
			db, err = stet.Open(ctx, dir, nil)
			return err
		}, func() error {
			return errors.Join(put(), db.Blobs().Flush(ctx))
		}, func() error {
			_, err := db.Blobs().Get(ctx, ids[rand.IntN(len(ids)-1)])
			return err
		})
	}, func() error { return db.Close() }, nil
}
