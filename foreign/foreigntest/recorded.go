package foreigntest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/foreign"
)

// Home returns a computer with an empty home, into which files of testdata are copied: the
// keys are their paths below the home.
func Home(t testing.TB, files map[string]string) foreign.Host {
	t.Helper()
	h := foreign.Host{Home: t.TempDir()}
	for to, from := range files {
		data, err := os.ReadFile(filepath.Join("testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		Put(t, filepath.Join(h.Home, to), string(data))
	}
	return h
}

// Put writes a file and the directories above it.
func Put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// PayloadFiles returns the payloads of testdata/payloads, one file for each event.
func PayloadFiles(t testing.TB, kinds map[string]foreign.EventKind) (out []Payload) {
	t.Helper()
	for event, kind := range kinds {
		data, err := os.ReadFile(filepath.Join("testdata", "payloads", event+".json"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Payload{Event: event, JSON: data, Kind: kind})
	}
	return out
}

// PayloadLines returns the payloads of testdata/payloads.jsonl, whose lines have an event
// and what the hook read from its standard input.
func PayloadLines(t testing.TB, kind func(event string, payload []byte) foreign.EventKind) (out []Payload) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "payloads.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var p struct {
			Event string
			Stdin json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, Payload{Event: p.Event, JSON: p.Stdin, Kind: kind(p.Event, p.Stdin)})
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%d payloads, %v", len(out), err)
	}
	return out
}
