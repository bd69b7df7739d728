package stream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/stream"
)

// childEnv makes the test binary a writer to the store in that directory.
const childEnv = "STET_STREAM_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(context.Background(), dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func open(ctx context.Context, dir string) (*stream.Store, *sqlite.DB, error) {
	db, err := sqlite.Open(ctx, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	return stream.New(blob.Checked(compressed.New(db.Blobs(), nil)), sealed.New(db.Rows(), nil), nil), db, nil
}

// lineOf is append i of the child; some are large enough to be blobs.
func lineOf(i uint64) string {
	if i%7 == 3 {
		return fmt.Sprintf("%d %s\n", i, strings.Repeat("large ", 8<<10))
	}
	return fmt.Sprintf("%d\n", i)
}

// writeUntilKilled continues the stream where it ends, as a producer does that finds out
// what it had sent, and acknowledges each append on standard output. It repeats the last
// one first: that may have been stored before the process ended.
func writeUntilKilled(ctx context.Context, dir string) error {
	s, _, err := open(ctx, dir)
	if err != nil {
		return err
	}
	info, err := s.Info(ctx, "s")
	if err != nil {
		return err
	}
	i := info.Tail.Seq
	if i > 0 {
		i--
	}
	for ; ; i++ {
		_, err := s.Append(ctx, "s", stream.Append{
			ContentType: text, Data: []byte(lineOf(i)), Producer: &stream.Producer{ID: "child", Seq: i},
		})
		if err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// A writer that is killed at any moment leaves every append that it acknowledged, once,
// in order and whole.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	s, db, err := open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, _, err := s.Create(t.Context(), "s", stream.Config{ContentType: text}, nil); err != nil {
		t.Fatal(err)
	}
	for loop := range testenv.Scale(6, 200) {
		acked := killAfter(t, dir, 6+loop*7%20)
		info, err := s.Info(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if info.Tail.Seq <= acked {
			t.Fatalf("the stream ends at %s, append %d was acknowledged", info.Tail, acked)
		}
		var want strings.Builder
		for i := range info.Tail.Seq {
			want.WriteString(lineOf(i))
		}
		if got := whole(t, s, "s"); got != want.String() {
			t.Fatalf("%d bytes after %d appends, want %d", len(got), info.Tail.Seq, want.Len())
		}
	}
}

// killAfter runs a writer, kills it after n acknowledgements and returns the last one.
func killAfter(t *testing.T, dir string, n int) uint64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last uint64
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Fatal(err)
		}
		if i == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, out)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return last
}
