package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// childEnv makes the test binary a process that uses a store: role, directory,
// and a number, separated by commas.
const childEnv = "STET_SQLITE_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := child(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// childObjectSize makes some of the children's blobs object files.
const childObjectSize = 8 << 10

func child(role string) error {
	part := strings.Split(role, ",")
	n, err := strconv.Atoi(part[2])
	if err != nil {
		return err
	}
	ctx := context.Background()
	db, err := Open(ctx, part[1], &Options{ObjectSize: childObjectSize, Readers: 1})
	if err != nil {
		return err
	}
	switch part[0] {
	case "write":
		err = childWrite(ctx, db, n)
	case "read":
		err = childRead(ctx, db)
	case "count":
		err = childCount(ctx, db, n)
	}
	return errors.Join(err, db.Close())
}

// childWrite saves numbered states until it is killed, and prints each number
// after it was acknowledged.
func childWrite(ctx context.Context, db *DB, writer int) error {
	key := fmt.Sprintf("writer/%d/", writer)
	first := 0
	if row, err := db.Rows().Get(ctx, key+"head"); err == nil {
		first, _ = strconv.Atoi(string(row.Value))
	}
	for n := first + 1; ; n++ {
		content := killContent(writer, n)
		if err := db.Blobs().Put(ctx, content); err != nil {
			return err
		}
		err := db.Rows().Commit(ctx, &kv.Batch{
			Set: []kv.Set{
				{Key: key + "head", Value: strconv.AppendInt(nil, int64(n), 10)},
				{Key: fmt.Sprintf("%slog/%08d", key, n), Value: []byte(content.ID.String())},
			},
			Refs: []blob.ID{content.ID},
		})
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// killContent is what a writer saves as its state n. One in eight is large.
func killContent(writer, n int) blob.Blob {
	size := 100
	if n%8 == 0 {
		size = childObjectSize
	}
	return blob.New(bytes.Repeat(fmt.Appendf(nil, "%d/%d ", writer, n), size/4))
}

// childRead follows all rows to their blobs until it is killed.
func childRead(ctx context.Context, db *DB) error {
	store := blob.Checked(db.Blobs())
	for {
		for row, err := range db.Rows().Scan(ctx, kv.Range{}, kv.ScanOptions{Reverse: true, Limit: 50}) {
			if err != nil {
				return err
			}
			for _, id := range idsIn(string(row.Value)) {
				if _, err := store.Get(ctx, id); err != nil {
					return fmt.Errorf("row %s: %w", row.Key, err)
				}
			}
		}
	}
}

// process is a started child.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	last   int // number that the child printed
	lines  int
	first  chan struct{} // closed after the first number
	done   chan struct{}
}

func start(t *testing.T, role, dir string, n int) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), first: make(chan struct{}), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s,%s,%d", childEnv, role, dir, n))
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(out)
	return p
}

// listen counts whole lines only: half a line was not acknowledged.
func (p *process) listen(out io.Reader) {
	defer close(p.done)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			p.last, p.lines = n, p.lines+1
			if p.lines == 1 {
				close(p.first)
			}
		}
	}
}

// kill ends the child at once, or reports that it had ended with an error.
func (p *process) kill() error {
	killErr := p.cmd.Process.Kill()
	<-p.done
	p.cmd.Wait()
	if killErr != nil || p.stderr.Len() > 0 {
		return fmt.Errorf("child: %v: %s", killErr, p.stderr.String())
	}
	return nil
}

func TestKill(t *testing.T) {
	t.Parallel() // it mostly waits
	loops, wantAcks := testenv.Scale(100, 5_000), testenv.Scale(2_500, 125_000)
	rng := rand.New(rand.NewPCG(9, 9))
	dir := t.TempDir()
	acks, acked, loop := 0, [2]int{}, 0
	for ; loop < loops || acks < wantAcks; loop++ {
		if loop > 0 && loop%100 == 0 {
			dir, acked = t.TempDir(), [2]int{} // keep the check of a loop short
		}
		children := []*process{start(t, "write", dir, 0), start(t, "write", dir, 1), start(t, "read", dir, 0)}
		if rng.IntN(4) != 0 { // else they die while they open the store
			select {
			case <-children[rng.IntN(2)].first:
			case <-time.After(5 * time.Second):
			}
		}
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		for _, i := range rng.Perm(len(children)) {
			if err := children[i].kill(); err != nil {
				t.Fatalf("loop %d: %v", loop, err)
			}
		}
		for w := range acked {
			acks += children[w].lines
			acked[w] = max(acked[w], children[w].last)
		}
		checkAfterKill(t, dir, acked, loop%20 == 0)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d loops, %d acknowledged commits", loop, acks)
}

// checkAfterKill opens the store as the next process would.
func checkAfterKill(t *testing.T, dir string, acked [2]int, thorough bool) {
	t.Helper()
	db, err := Open(t.Context(), dir, &Options{ObjectSize: childObjectSize, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for w, want := range acked {
		checkWriter(t, db, w, want)
	}
	leftovers, err := os.ReadDir(filepath.Join(dir, objectsName, tempDirName))
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(leftovers) > 0 {
		t.Errorf("%d leftovers, %v", len(leftovers), err)
	}
	if !thorough {
		return
	}
	report, err := db.Check(t.Context(), CheckOptions{})
	if err != nil || len(report.Damage) > 0 {
		t.Errorf("check: %v, %v", report.Damage, err)
	}
}

func checkWriter(t *testing.T, db *DB, writer, acked int) {
	t.Helper()
	key := fmt.Sprintf("writer/%d/", writer)
	head := 0
	row, err := db.Rows().Get(t.Context(), key+"head")
	if err == nil {
		head, err = strconv.Atoi(string(row.Value))
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = nil
	}
	if err != nil || head < acked {
		t.Fatalf("writer %d: state %d, %v; acknowledged was %d", writer, head, err, acked)
	}
	n := 0
	for row, err := range db.Rows().Scan(t.Context(), kv.Range{Start: key + "log/", End: key + "log0"}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		want := killContent(writer, n)
		if string(row.Value) != want.ID.String() {
			t.Fatalf("row %s holds %.12s, want %s", row.Key, row.Value, want.ID.Short())
		}
		if n+100 < acked {
			continue // was read after an earlier kill
		}
		if got, err := db.Blobs().Get(t.Context(), want.ID); err != nil || !bytes.Equal(got, want.Data) {
			t.Fatalf("blob of row %s: %d bytes, %v", row.Key, len(got), err)
		}
	}
	if n != head {
		t.Errorf("writer %d: %d rows in the log, the head says %d", writer, n, head)
	}
}

// childCount increments a counter n times by compare-and-swap.
func childCount(ctx context.Context, db *DB, n int) error {
	for done := 0; done < n; {
		b := &kv.Batch{}
		if err := addIncrement(ctx, db, b); err != nil {
			return err
		}
		switch err := db.Rows().Commit(ctx, b); {
		case err == nil:
			done++
		case !errors.Is(err, kv.ErrConflict):
			return err
		}
	}
	return nil
}

// TestProcesses lets two processes count on one store while this one watches.
func TestProcesses(t *testing.T) {
	const each = 200
	dir := t.TempDir()
	db, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	woken := db.Rows().Watch(ctx, kv.Range{Start: counterKey})
	var wg sync.WaitGroup
	for range 2 {
		p := start(t, "count", dir, each)
		wg.Go(func() {
			<-p.done
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, p.stderr.String())
			}
		})
	}
	select {
	case <-woken:
	case <-ctx.Done():
		t.Error("commits of another process woke nobody")
	}
	wg.Wait()
	row, err := db.Rows().Get(t.Context(), counterKey)
	if err != nil || string(row.Value) != strconv.Itoa(2*each) {
		t.Errorf("counter is %q, %v; want %d", row.Value, err, 2*each)
	}
}
