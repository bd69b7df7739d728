package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// entry is one run of the tests of a package: a line of the ledger.
type entry struct {
	path    string
	sum     string
	threads int
	took    time.Duration
	ok      bool
	output  string // where the output of a failed run is; not in the ledger
}

func (e entry) String() string {
	line := fmt.Sprintf("%s  %s  GOMAXPROCS=%d  %s", map[bool]string{true: "ok    ", false: "FAILED"}[e.ok], e.path, e.threads, e.took.Round(100*time.Millisecond))
	if e.output != "" {
		line += "  " + e.output
	}
	return line
}

// ledger is a file with a line for each run.
type ledger struct {
	mu   sync.Mutex // guards all and writes to file
	all  []entry
	file *os.File
}

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l := &ledger{file: file}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// A line that was cut when the machine ended counts for nothing.
		var e entry
		if n, _ := fmt.Sscanf(lines.Text(), "%s %s %d %d %t", &e.path, &e.sum, &e.threads, &e.took, &e.ok); n == 5 {
			l.all = append(l.all, e)
		}
	}
	return l, lines.Err()
}

func (l *ledger) close() error { return l.file.Close() }

func (l *ledger) add(e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
	// Each line begins on its own, whatever became of the one before.
	_, err := fmt.Fprintf(l.file, "\n%s %s %d %d %t", e.path, e.sum, e.threads, int64(e.took), e.ok)
	return err
}

// of returns the runs of a package with these tests.
func (l *ledger) of(path, sum string) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var mine []entry
	for _, e := range l.all {
		if e.path == path && e.sum == sum {
			mine = append(mine, e)
		}
	}
	return mine
}

func (l *ledger) runs(path, sum string) int { return len(l.of(path, sum)) }

// took returns how long the last run of a package took, whatever its tests were.
func (l *ledger) took(path string) (d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if e.path == path {
			d = e.took
		}
	}
	return d
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
