package proof_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/proof"
	"github.com/stet-dev/stet/purge"
)

func TestAProofShowsAConversationAndItsFiles(t *testing.T) {
	w := newWorld(t)
	_, last := w.history()
	for _, contents := range []bool{false, true} {
		data := w.prove(proof.Subject{Conversation: "shop"}, contents)
		res := verify(t, data)
		if res.Conversation != "shop" || res.Title != "add retry" || !res.Time.Equal(noon) || !res.Key.Equal(public) {
			t.Errorf("proven: %+v", res)
		}
		if len(res.Saves) != 3 || len(res.Checkpoints) != 2 || res.Checkpoints[1].Tree != last.Tree || len(res.Gone)+len(res.Rewritten)+len(res.RemovedSaves) != 0 {
			t.Errorf("proven: %+v", res)
		}
		if res.LogEntries != 3 || len(res.Operations) != 1 || res.Operations[0].Description != "about shop" || res.Groups != 3 {
			t.Errorf("log: %+v", res)
		}
		if contents != (res.Hashes == 0) || bytes.Contains(data, []byte("about other")) {
			t.Errorf("contents %v: %d hashes", contents, res.Hashes)
		}
	}
}

func TestCompareFindsEveryDifference(t *testing.T) {
	w := newWorld(t)
	_, last := w.history()
	res := verify(t, w.prove(proof.Subject{Checkpoint: last.ID}, false))
	differ, _, err := res.Compare(w.project, "")
	must(t, err)
	if want := []proof.Difference{{Path: "main.go", What: "content"}}; !slices.Equal(differ, want) {
		t.Errorf("differences %v, want %v", differ, want)
	}
	w.write("main.go", "package main\n\nfunc main() {}\n")
	w.write("deep/new", "")
	differ, extra, err := res.Compare(w.project, last.Name())
	must(t, err)
	if len(differ) != 0 || !slices.Equal(extra, []string{"deep/new"}) {
		t.Errorf("differences %v, others %v", differ, extra)
	}
	must(t, os.Chmod(filepath.Join(w.project, "main.go"), 0o755))
	must(t, os.Remove(filepath.Join(w.project, "deep/er/notes.txt")))
	must(t, os.Mkdir(filepath.Join(w.project, "deep/er/notes.txt"), 0o755))
	differ, _, err = res.Compare(w.project, last.ID)
	must(t, err)
	if want := []proof.Difference{{Path: "deep/er/notes.txt", What: "kind"}, {Path: "main.go", What: "mode"}}; !slices.Equal(differ, want) {
		t.Errorf("differences %v, want %v", differ, want)
	}
	must(t, os.RemoveAll(filepath.Join(w.project, "deep")))
	if differ, _, err = res.Compare(w.project, ""); err != nil || len(differ) != 2 || differ[0].What != "missing" {
		t.Errorf("differences %v, %v", differ, err)
	}
	if _, _, err := res.Compare(w.project, "c77"); !errors.Is(err, proof.ErrNotFound) {
		t.Errorf("an unknown checkpoint: %v", err)
	}
}

// Every byte is bound by the signature, and every line is needed.
func TestAChangedProofIsRefused(t *testing.T) {
	w := newWorld(t)
	_, last := w.history()
	good := w.prove(proof.Subject{Checkpoint: last.ID}, true)
	refused := func(what string, at int, data []byte) {
		t.Helper()
		if _, err := proof.Verify(bytes.NewReader(data), nil); !errors.Is(err, proof.ErrBroken) && !errors.Is(err, proof.ErrNewer) {
			t.Fatalf("%s at %d: %v", what, at, err)
		}
	}
	for at := range good {
		for _, bit := range []byte{1, 0x20} { // another letter, another case
			bad := bytes.Clone(good)
			bad[at] ^= bit
			refused("a changed byte", at, bad)
		}
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	lines = lines[:len(lines)-1]
	for at := range lines {
		refused("cut off", at, bytes.Join(lines[:at], nil))
		refused("without a line", at, bytes.Join(slices.Delete(slices.Clone(lines), at, at+1), nil))
		refused("with a line twice", at, bytes.Join(slices.Insert(slices.Clone(lines), at, lines[at]), nil))
	}
	refused("without the last line break", 0, good[:len(good)-1])
	refused("with more after it", 0, append(bytes.Clone(good), '\n'))
	for name, at := range map[string]string{"empty": "", "another file": "hello\n", "json": "{}\n{}\n"} {
		refused(name, 0, []byte(at))
	}
}

// A holder of the key cannot sign what is inconsistent.
func TestASignedLieIsRefused(t *testing.T) {
	w := newWorld(t)
	w.history()
	good := w.prove(proof.Subject{Conversation: "shop"}, true)
	lines := strings.SplitAfter(strings.TrimSuffix(string(good), "\n"), "\n")
	body := lines[:len(lines)-1]
	if _, err := proof.Verify(strings.NewReader(resign(body)), nil); err != nil {
		t.Fatal(err)
	}
	for at := 1; at < len(body); at++ {
		without := slices.Delete(slices.Clone(body), at, at+1)
		if _, err := proof.Verify(strings.NewReader(resign(without)), nil); !errors.Is(err, proof.ErrBroken) {
			t.Errorf("without line %d, %s: %v", at, body[at], err)
		}
		twice := slices.Insert(slices.Clone(body), at, body[at])
		if _, err := proof.Verify(strings.NewReader(resign(twice)), nil); !errors.Is(err, proof.ErrBroken) {
			t.Errorf("with line %d twice, %s: %v", at, body[at], err)
		}
	}
	for _, swap := range [][2]string{{`"rows":6`, `"rows":5`}, {`"groups":3`, `"groups":2`}, {`"after":1`, `"after":0`}, {`"entries":3`, `"entries":2`}, {`"conversation":"shop"`, `"conversation":"other"`}} {
		lie := strings.Replace(strings.Join(body, ""), swap[0], swap[1], 1)
		if lie == strings.Join(body, "") {
			t.Errorf("the proof has no %s", swap[0])
		}
		if _, err := proof.Verify(strings.NewReader(resign([]string{lie})), nil); !errors.Is(err, proof.ErrBroken) {
			t.Errorf("%s in the place of %s: %v", swap[1], swap[0], err)
		}
	}
}

// resign signs lines.
func resign(lines []string) string {
	body := strings.Join(lines, "")
	sum := blob.Sum([]byte(body))
	signature := ed25519.Sign(key, append([]byte("stet-proof-v1\x00"), sum[:]...))
	last, _ := json.Marshal(map[string]any{"key": proof.FormatPublic(public), "signature": signature})
	return body + string(last) + "\n"
}

func TestProofsOfOthersAndOfLaterReleases(t *testing.T) {
	w := newWorld(t)
	w.history()
	good := w.prove(proof.Subject{Conversation: "shop"}, false)
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	_, err := proof.Verify(bytes.NewReader(good), &proof.VerifyOptions{Key: other.Public().(ed25519.PublicKey)})
	if !errors.Is(err, proof.ErrOtherKey) {
		t.Errorf("another key: %v", err)
	}
	later := strings.Replace(string(good), `"version":1`, `"version":2,"more":true`, 1)
	if _, err := proof.Verify(strings.NewReader(later), nil); !errors.Is(err, proof.ErrNewer) {
		t.Errorf("a later release: %v", err)
	}
	for _, about := range []proof.Subject{{Conversation: "nobody"}, {Checkpoint: "01jcx400000000000000000000"}} {
		err := proof.Write(t.Context(), &bytes.Buffer{}, proof.Stores{Blobs: w.db.Blobs(), Rows: w.db.Rows()}, about, key, nil)
		if !errors.Is(err, proof.ErrNotFound) {
			t.Errorf("%+v: %v", about, err)
		}
	}
}

func TestAConversationWithoutSaves(t *testing.T) {
	w := newWorld(t)
	w.talk("empty", "just begun")
	res := verify(t, w.prove(proof.Subject{Conversation: "empty"}, true))
	if res.Title != "just begun" || len(res.Saves) != 0 || res.LogEntries != 0 {
		t.Errorf("proven: %+v", res)
	}
}

// A purge rewrites rows. Proofs from before and after it are both valid, and each row that
// was rewritten shows the hash of what the earlier proof has.
func TestProofsBeforeAndAfterAPurge(t *testing.T) {
	w := newWorld(t)
	w.history()
	must(t, w.db.Checkpoints().Log(t.Context(), &checkpoint.Operation{Kind: "note", Conversation: "shop", Description: "saw sk-live-0123456789"}))
	c, err := w.db.Conversations().Open(t.Context(), "shop")
	must(t, err)
	_, err = c.Save(t.Context(), &conversation.SaveOptions{Author: "sk-live-0123456789", MessageID: "m1"})
	must(t, err)
	before := w.prove(proof.Subject{Conversation: "shop"}, true)
	was := rowsOf(t, before)

	purger, err := w.db.Purger()
	must(t, err)
	plan, err := purger.Find(t.Context(), purge.Target{Secrets: [][]byte{[]byte("sk-live-0123456789")}})
	must(t, err)
	_, err = purger.Remove(t.Context(), plan)
	must(t, err)
	w.log("purge", "")

	verify(t, before)
	after := w.prove(proof.Subject{Conversation: "shop"}, true)
	if bytes.Contains(after, []byte("sk-live")) {
		t.Error("the proof has the secret")
	}
	res := verify(t, after)
	families := map[string]int{}
	for _, row := range res.Rewritten {
		families[keyspace.Family(row.Key)]++
		if blob.Sum(was[row.Key]) != row.Original {
			t.Errorf("%s shows %s, which is not the hash of the earlier proof", row.Key, row.Original)
		}
	}
	if families["stet:checkpoint"] != 2 || families["stet:save"] != 1 || families["stet:op"] != 1 {
		t.Errorf("rewritten: %v", families)
	}
}

// rowsOf returns the values of the rows that a proof shows.
func rowsOf(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	rows := map[string][]byte{}
	for line := range bytes.Lines(data) {
		var l struct {
			Key   string
			Value []byte
		}
		must(t, json.Unmarshal(line, &l))
		rows[l.Key] = l.Value
	}
	return rows
}

func TestWhatAPolicyRemovedIsMissing(t *testing.T) {
	w := newWorld(t)
	w.history()
	before := w.prove(proof.Subject{Conversation: "shop"}, true)
	saves, err := w.db.Conversations().Retainable(t.Context(), nil)
	must(t, err)
	plan := conversation.PlanRetention(saves, conversation.Policy{MaxSaves: 1}, time.Now())
	_, err = w.db.Conversations().ApplyRetention(t.Context(), plan)
	must(t, err)
	verify(t, before)
	res := verify(t, w.prove(proof.Subject{Conversation: "shop"}, true))
	if len(res.Saves) != 1 || !slices.Equal(res.RemovedSaves, []uint64{1, 2}) {
		t.Errorf("saves %v, removed %v", res.Saves, res.RemovedSaves)
	}
}

// A blob that is lost is named by its hash.
func TestLostBlobsAreNamed(t *testing.T) {
	w := newWorld(t)
	_, last := w.history()
	var buf bytes.Buffer
	stores := proof.Stores{Blobs: without{w.db.Blobs(), last.Tree}, Rows: w.db.Rows()}
	must(t, proof.Write(t.Context(), &buf, stores, proof.Subject{Conversation: "shop"}, key, nil))
	res := verify(t, buf.Bytes())
	if !slices.Equal(res.Gone, []blob.ID{last.Tree}) {
		t.Errorf("gone: %v", res.Gone)
	}
	differ, _, err := res.Compare(w.project, "")
	if err != nil || len(differ) != 1 || differ[0].What != "erased" {
		t.Errorf("differences %v, %v", differ, err)
	}
}
