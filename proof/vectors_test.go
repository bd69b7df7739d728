package proof_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/proof"
)

var update = flag.Bool("update", false, "write the test vectors again")

// vectors returns the proofs in testdata. They stay: a later release must accept them.
func vectors(t testing.TB) map[string][]byte {
	t.Helper()
	if *update {
		w := newWorld(t)
		_, last := w.history()
		must(t, w.db.Checkpoints().Log(t.Context(), &checkpoint.Operation{Kind: "note", Conversation: "shop"}))
		for name, data := range map[string][]byte{
			"hashes":     w.prove(proof.Subject{Conversation: "shop"}, false),
			"contents":   w.prove(proof.Subject{Conversation: "shop"}, true),
			"checkpoint": w.prove(proof.Subject{Checkpoint: last.ID}, true),
		} {
			must(t, os.WriteFile(filepath.Join("testdata", name+".proof"), data, 0o644))
		}
	}
	files, err := filepath.Glob("testdata/*.proof")
	must(t, err)
	all := map[string][]byte{}
	for _, file := range files {
		all[file], err = os.ReadFile(file)
		must(t, err)
	}
	if len(all) != 3 {
		t.Fatalf("there are %d vectors", len(all))
	}
	return all
}

func TestVectors(t *testing.T) {
	for name, data := range vectors(t) {
		res := verify(t, data)
		if !res.Time.Equal(noon) || len(res.Checkpoints) == 0 || len(res.Operations) == 0 && res.Checkpoint == "" {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// A verifier that was written from the description of the format agrees with ours.
func TestAnIndependentVerifierAgrees(t *testing.T) {
	python, err := exec.LookPath("python3")
	testenv.SkipWithout(t, "python3", err)
	run := func(file string) (string, bool) {
		out, err := exec.CommandContext(t.Context(), python, "-B", "testdata/verify.py", file).CombinedOutput()
		return string(out), err == nil
	}
	for file, data := range vectors(t) {
		if out, ok := run(file); !ok || !strings.HasPrefix(out, "ok ") || !strings.Contains(out, "2026-01-02T12:00:00.000Z") {
			t.Errorf("%s: %s", file, out)
		}
		bad := bytes.Clone(data)
		bad[len(bad)/2] ^= 1
		path := filepath.Join(t.TempDir(), "bad.proof")
		must(t, os.WriteFile(path, bad, 0o644))
		if out, ok := run(path); ok || !strings.Contains(out, "not valid: the signature") {
			t.Errorf("%s with a changed byte: %s", file, out)
		}
	}
}

func FuzzVerify(f *testing.F) {
	for _, data := range vectors(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The signature of a changed text is wrong, so sign it again, to come further.
		lines := bytes.SplitAfter(data, []byte("\n"))
		texts := make([]string, len(lines))
		for i, line := range lines {
			texts[i] = string(line)
		}
		for _, text := range []string{string(data), resign(texts), resign(texts[:max(0, len(texts)-2)])} {
			res, err := proof.Verify(strings.NewReader(text), nil)
			if (res == nil) == (err == nil) {
				t.Fatalf("result %v, error %v", res, err)
			}
			if err == nil {
				_, _, _ = res.Compare(t.TempDir(), "") // must not panic
			}
		}
	})
}
