package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// postgresTool runs a program of a server's version.
func postgresTool(t *testing.T, server *realservers.PostgresServer, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), server.Program(name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// copyBucket copies every object, as any tool for buckets does.
func copyBucket(t *testing.T, from, to string) int {
	t.Helper()
	source, err := s3blob.Open(t.Context(), from, nil)
	if err != nil {
		t.Fatal(err)
	}
	target, err := s3blob.Open(t.Context(), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = source.ListObjects(t.Context(), "", "", func(o blob.ObjectInfo) error {
		n++
		r, err := source.OpenObject(t.Context(), o.Key, 0, -1)
		if err != nil {
			return err
		}
		return errors.Join(target.PutObject(t.Context(), o.Key, r, o.Size), r.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A backup is a copy of the database and then one of the bucket, while nodes go on
// working. What is restored from it is whole, and followers that are ahead of it
// are told so: they get the state again, and then what follows.
func TestRestoreFromABackup(t *testing.T) {
	server := realservers.Postgres(t, realservers.PostgresOptions{})
	s := newSite(t, server.NewDatabase(t), realservers.S3(t))
	all := s.startNodes(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	agents := all.client(t).Agents()
	if _, err := agents.Create(ctx, "worker", "", ""); err != nil {
		t.Fatal(err)
	}
	store := conversation.New(blob.Checked(all.client(t).Blobs()), all.client(t).Rows(), nil)
	talk, err := store.Create(ctx, conversation.Info{ID: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	work := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			if _, err := agents.Append(ctx, "worker", fmt.Sprint("from ", n), text(fmt.Sprint(n))); err != nil {
				t.Fatal(err)
			}
			if err := saveOne(ctx, talk); err != nil {
				t.Fatal(err)
			}
		}
	}
	work(0, 12)
	if _, err := s.shop(t).Archive(ctx, "worker"); err != nil {
		t.Fatal(err)
	}
	work(12, 20)

	dump := filepath.Join(t.TempDir(), "dump")
	postgresTool(t, server, "pg_dump", "--format=custom", "--file="+dump, "--dbname="+s.config.Database)
	work(20, 30) // after the first copy and before the second
	if _, err := s.shop(t).Collect(ctx, &upkeep.CollectOptions{Grace: time.Hour}); err != nil {
		t.Fatal(err)
	}
	restored := *s
	restored.config.Blobs = s.s3.URL(s.s3.NewBucket(t))
	if n := copyBucket(t, s.config.Blobs, restored.config.Blobs); n == 0 {
		t.Error("there was nothing in the bucket")
	}
	last := followTo(ctx, t, all.client(t).Agents(), "worker", "", 0, 30)

	restored.config.Database = server.NewDatabase(t)
	postgresTool(t, server, "pg_restore", "--no-owner", "--dbname="+restored.config.Database, dump)
	db := restored.open(t).Postgres()
	before, err := db.Epoch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := db.BumpEpoch(ctx); err != nil || now != before+1 {
		t.Fatalf("epoch %d after %d, %v", now, before, err)
	}
	report, err := restored.shop(t).Check(ctx, &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
	info, err := restored.shop(t).Conversations().Get(ctx, "talk")
	if err != nil || info.Save != 20 {
		t.Errorf("restored: %+v, %v", info, err)
	}
	again := restored.startNodes(t, 2)
	if _, err := again.client(t).Agents().Append(ctx, "worker", "another", text("20")); err != nil {
		t.Fatal(err)
	}
	followTo(ctx, t, again.client(t).Agents(), "worker", last, 0, 21)
}

// A database that is restored to a moment in the past, beside a bucket that was not
// touched, is whole as of that moment: what rows name is still there, and what was
// stored since is an orphan at most.
func TestRestoreToAMoment(t *testing.T) {
	server := realservers.Postgres(t, realservers.PostgresOptions{Own: true, Archive: true})
	s := newSite(t, server.NewDatabase(t), realservers.S3(t))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	db := s.shop(t)
	talk, err := db.Conversations().Create(ctx, conversation.Info{ID: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	var large []blob.Blob
	save := func(n int) {
		t.Helper()
		one := blob.New(bytes.Repeat([]byte(fmt.Sprint("large ", len(large), " ")), 100_000))
		large = append(large, one)
		err := db.Blobs().Put(ctx, one)
		if err == nil {
			err = db.Rows().Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: fmt.Sprint("large:", len(large))}}, Refs: []blob.ID{one.ID}})
		}
		for range n {
			err = errors.Join(err, saveOne(ctx, talk))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	save(5)
	backup := server.Backup(t)
	save(5)
	server.Remember(t, "before the accident")
	save(5)
	if err := db.Conversations().Delete(ctx, "talk", nil); err != nil {
		t.Fatal(err)
	}

	past := *s
	past.config.Database = server.RestoreTo(t, backup, "before the accident").DSN(databaseName(t, s.config.Database))
	if _, err := past.open(t).Postgres().BumpEpoch(ctx); err != nil {
		t.Fatal(err)
	}
	again := past.shop(t)
	if info, err := again.Conversations().Get(ctx, "talk"); err != nil || info.Save != 10 {
		t.Errorf("restored: %+v, %v", info, err)
	}
	for i, one := range large[:2] {
		if got, err := again.Blobs().Get(ctx, one.ID); err != nil || !bytes.Equal(got, one.Data) {
			t.Errorf("large blob %d: %d bytes, %v", i, len(got), err)
		}
	}
	if has, err := again.Blobs().Has(ctx, large[2].ID); err != nil || has[0] {
		t.Errorf("what was stored later is there: %v, %v", has, err)
	}
	report, err := again.Check(ctx, &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
	save(0) // the other one goes on, and nobody is in the other's way
}

// databaseName returns the name of the database in an address.
func databaseName(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// followTo reads numbers from one to another and returns the last offset. A reader
// that begins with the initial state, or is given it, begins with the first number.
func followTo(ctx context.Context, t *testing.T, agents *client.Agents, id, after string, from, to int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next, initial := from, 0
	for e, err := range agents.Follow(ctx, id, &client.FollowOptions{After: after}) {
		if err != nil {
			t.Fatalf("after %d events: %v", next, err)
		}
		if e.Initial {
			initial++
		}
		if e.Update == nil {
			continue
		}
		if got := e.Update.GetTextDelta().GetText(); got != fmt.Sprint(next) || initial != 1 {
			t.Fatalf("event %d is %q, after %d beginnings", next, got, initial)
		}
		if next++; next == to {
			return e.Offset
		}
	}
	t.Fatalf("it ended after %d events", next)
	return ""
}

// passworded is the address of a database for a user with a password.
func passworded(t *testing.T, dsn, user, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}
