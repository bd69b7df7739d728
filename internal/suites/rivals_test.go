package suites

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// rivals brings what the benchmarks compare us with.
func rivals(b *testing.B) {
	b.Helper()
	testenv.Need(b, "node", "suites", "rivals")
	if out, err := exec.CommandContext(b.Context(), "../tools/npm.sh", "rivals").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// BenchmarkSavers compares LangGraph's own savers with ours: puts and gets of small states
// by one client, and the bytes of 1,000 states of a list that grows by 1 KB. Content
// is what each step brought, compressed: a message, ids, versions and metadata. Ratios of
// rates are ours by theirs. Theirs run in the process of the client. The memory saver keeps
// nothing after it, and the SQLite saver does not wait for the disk; ours does with each
// put, behind a server.
func BenchmarkSavers(b *testing.B) {
	rivals(b)
	build(b, savers.dir)
	for b.Loop() {
		in := embedded(b)
		p := in.start(b)
		cmd := exec.CommandContext(b.Context(), "node", "savers.js")
		cmd.Dir = "rivals"
		cmd.Env = append(os.Environ(), "STET_URL="+p.address, "STET_TOKEN="+p.token, "DIR="+b.TempDir(), "ROUNDS=3", "STEPS=100", "GROW=1000", "MESSAGE=1024")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		var said struct {
			Rates  map[string]float64
			Grown  int64
			Pieces []json.RawMessage
		}
		if err == nil {
			err = json.Unmarshal(out, &said)
		}
		if err != nil {
			b.Fatalf("%v: %.200s", err, out)
		}
		quiet(b, in.dir)
		stop(b, p.cmd)
		for _, what := range []string{"puts", "gets"} {
			ours := said.Rates["stet "+what]
			b.ReportMetric(ours, what+"/s")
			b.ReportMetric(ours/said.Rates["sqlite "+what], what+"/sqlite")
			b.ReportMetric(ours/said.Rates["memory "+what], what+"/memory")
		}
		content := float64(compressed(b, said.Pieces))
		b.ReportMetric(float64(size(b, in.dir))/float64(said.Grown), "files/sqlite")
		b.ReportMetric(float64(stored(b, in.dir))/content, "stored/content")
		b.ReportMetric(float64(said.Grown)/content, "sqlite/content")
	}
}

// quiet waits until the server has compacted what it stored.
func quiet(b *testing.B, dir string) {
	b.Helper()
	const still = 5 * time.Second
	last, since := int64(-1), time.Now()
	for time.Since(since) < still {
		if now := size(b, dir); now != last {
			last, since = now, time.Now()
		}
		time.Sleep(still / 20)
	}
}

// size is what all files of a directory take.
func size(b *testing.B, dir string) (total int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return nil // it may be gone already
	})
	if err != nil {
		b.Fatal(err)
	}
	return total
}

// stored is what the blobs and rows of the growing list take in a store.
func stored(b *testing.B, dir string) (total int64) {
	b.Helper()
	db, err := stet.Open(b.Context(), dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for i := 0; err == nil && i < 3; i++ { // the small states
		err = db.Threads().Delete(b.Context(), fmt.Sprint("rate-", i))
	}
	if err == nil {
		_, err = db.Collect(b.Context(), &upkeep.CollectOptions{Grace: -1})
	}
	if err == nil {
		err = db.List(b.Context(), blob.ID{}, func(i blob.Info) error {
			total += i.Stored
			return nil
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	for row, err := range kv.Each(b.Context(), db.Rows(), kv.Range{}, false) {
		if err != nil {
			b.Fatal(err)
		}
		total += int64(len(row.Key) + len(row.Value))
	}
	return total
}

// compressed is what pieces take when each is compressed by itself.
func compressed(b *testing.B, pieces []json.RawMessage) (total int) {
	b.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer enc.Close()
	for _, piece := range pieces {
		total += len(enc.EncodeAll(piece, nil))
	}
	return total
}

// BenchmarkStreams compares the reference server of Durable Streams, with its files, with
// ours; both wait for the disk. It measures appends a second by one and by sixteen writers,
// each with a stream, and the delay to eight followers of one stream. Ratios are ours by
// theirs.
func BenchmarkStreams(b *testing.B) {
	rivals(b)
	ours := embedded(b).start(b)
	defer stop(b, ours.cmd)
	servers := []server{ours.server, reference(b)}
	for b.Loop() {
		for _, writers := range []int{1, 16} {
			var took [2]time.Duration
			for round := range 3 {
				for i, at := range servers {
					took[i] += appending(b, at, fmt.Sprintf("rate-%d-%d", writers, round), writers, 640/writers)
				}
			}
			b.ReportMetric(3*640/took[0].Seconds(), fmt.Sprintf("appends-%d/s", writers))
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), fmt.Sprintf("ratio-%d", writers))
		}
		var late [2][]time.Duration
		for round := range 3 {
			for i, at := range servers {
				late[i] = append(late[i], following(b, at, fmt.Sprint("follow-", round), 8, 100)...)
			}
		}
		for i, name := range []string{"p99-ms", "reference-p99-ms"} {
			slices.Sort(late[i])
			b.ReportMetric(late[i][len(late[i])*99/100].Seconds()*1000, name)
		}
	}
}

// reference runs the reference server until the benchmark ends.
func reference(b *testing.B) server {
	b.Helper()
	cmd := exec.Command("node", "streams.js", b.TempDir())
	cmd.Dir = "rivals"
	testenv.EndWithTests(cmd, syscall.SIGKILL)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // it has nothing to end
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return server{address: strings.TrimSuffix(strings.TrimSpace(line), "/")}
}

// request sends one request about a stream.
func request(ctx context.Context, at server, method, stream, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, at.address+"/v1/stream/"+stream, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if at.token != "" {
		req.Header.Set("Authorization", "Bearer "+at.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s", method, stream, res.Status)
	}
	return res, err
}

// call is request without the answer.
func call(b *testing.B, at server, method, stream, body string) {
	res, err := request(b.Context(), at, method, stream, body)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close() // it was read
	}
	if err != nil {
		b.Error(err)
	}
}

// appending returns how long writers take for some appends each.
func appending(b *testing.B, at server, name string, writers, each int) time.Duration {
	b.Helper()
	body := `{"text":"` + strings.Repeat("some words ", 20) + `"}`
	for w := range writers {
		call(b, at, http.MethodPut, fmt.Sprint(name, "-", w), "")
	}
	start := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				call(b, at, http.MethodPost, fmt.Sprint(name, "-", w), body)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

var sent = regexp.MustCompile(`"sent":(\d+)`)

// following returns the time from each append to each follower.
func following(b *testing.B, at server, name string, followers, appends int) []time.Duration {
	b.Helper()
	call(b, at, http.MethodPut, name, "")
	start := time.Now()
	var mu sync.Mutex
	var late []time.Duration
	var wg sync.WaitGroup
	for range followers {
		res, err := request(b.Context(), at, http.MethodGet, name+"?offset=-1&live=sse", "")
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			defer res.Body.Close()
			lines := bufio.NewReader(res.Body)
			for seen := 0; seen < appends; {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					b.Error(err)
					return
				}
				now := time.Since(start)
				for _, m := range sent.FindAllSubmatch(bytes.TrimSpace(line), -1) {
					at, err := strconv.ParseInt(string(m[1]), 10, 64)
					if err != nil || at > math.MaxInt64/2 {
						b.Error(err)
					}
					seen++
					mu.Lock()
					late = append(late, now-time.Duration(at))
					mu.Unlock()
				}
			}
		})
	}
	for range appends {
		call(b, at, http.MethodPost, name, fmt.Sprintf(`{"sent":%d}`, time.Since(start)))
	}
	wg.Wait()
	return late
}
