package scenario

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// Producers append to one stream while its server is killed and started again. Each repeats
// an append until it is acknowledged. In the end every append is there once, in the order
// of its producer.
func TestStreamsOfAKilledServer(t *testing.T) {
	const producers = 4
	kills := testenv.Sizes(3, 12, 60)
	dir := t.TempDir()
	var address atomic.Value
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	server := spawn(t, dir)
	defer func() { server.kill() }()
	address.Store(server.address)
	request := func(method, body string, headers ...string) (int, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, address.Load().(string)+"/v1/stream/log", strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "text/plain")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res.StatusCode, string(text), err
	}
	if status, text, err := request("PUT", ""); status != 201 || err != nil {
		t.Fatal(status, text, err)
	}
	var stop atomic.Bool
	progress := make(chan struct{}, 1)
	var acked [producers]atomic.Int64
	var work sync.WaitGroup
	for p := range producers {
		work.Go(func() {
			for n := 0; !stop.Load(); {
				status, text, err := request("POST", fmt.Sprintf("%d.%d\n", p, n),
					"Producer-Id", fmt.Sprint(p), "Producer-Epoch", "0", "Producer-Seq", fmt.Sprint(n))
				switch {
				case err == nil && (status == 200 || status == 204):
					n++
					acked[p].Store(int64(n))
					select {
					case progress <- struct{}{}:
					default:
					}
				case err == nil && status < 500:
					t.Errorf("producer %d, append %d: %d %s", p, n, status, text)
					select {
					case progress <- struct{}{}:
					default:
					}
					return
				}
			}
		})
	}
	sum := func() (n int64) {
		for p := range producers {
			n += acked[p].Load()
		}
		return n
	}
	for range kills {
		for before := sum(); sum() < before+10 && !t.Failed(); { // while it writes
			<-progress
		}
		server.kill()
		server = spawn(t, dir)
		address.Store(server.address)
	}
	stop.Store(true)
	work.Wait()
	status, text, err := request("GET", "")
	if status != 200 || err != nil {
		t.Fatal(status, err)
	}
	var next [producers]int64
	for _, line := range strings.Fields(text) {
		var p int
		var n int64
		if _, err := fmt.Sscanf(line, "%d.%d", &p, &n); err != nil || next[p] != n {
			t.Fatalf("producer %d: append %d in the place of %d, %v", p, n, next[p], err)
		}
		next[p]++
	}
	for p := range producers {
		if next[p] < acked[p].Load() {
			t.Errorf("producer %d has %d appends, %d were acknowledged", p, next[p], acked[p].Load())
		}
	}
}
