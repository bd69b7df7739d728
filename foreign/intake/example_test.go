package intake_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/kv/memkv"
)

// A session is copied while it grows: each pass adds what is new.
func ExampleIntake_Session() {
	dir, err := os.MkdirTemp("", "session")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	session := foreign.Session{Agent: "toy", ID: "a-session", Path: filepath.Join(dir, "session.jsonl")}
	blobs := memblob.New()
	m := intake.New(blobs, memkv.New(blobs), toy{})
	record := ""
	for _, line := range []string{`{"ID":"1","Prompt":"add retry"}`, `{"ID":"2","Prompt":"test it"}`} {
		record += line + "\n"
		if err := os.WriteFile(session.Path, []byte(record), 0o600); err != nil {
			panic(err)
		}
		result, err := m.Session(context.Background(), session)
		fmt.Println(result.Conversation, result.Turns, err)
	}
	// Output:
	// a-session 1 <nil>
	// a-session 1 <nil>
}
