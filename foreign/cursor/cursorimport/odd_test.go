package cursorimport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

// Times that JSON cannot represent are dropped. They must not end an import.
func TestTimesBeyondAllCalendars(t *testing.T) {
	for _, when := range []string{"900000000000000", "-900000000000000", `"9999-12-31T23:59:59-23:00"`, `"0000-01-01T00:00:00+23:00"`} {
		_, dst := cursortest.OpenDB(t)
		src := editorStore(t, map[string]string{
			"composerData:c": fmt.Sprintf(`{"_v":16,"composerId":"c","createdAt":%s,"lastUpdatedAt":%s,"fullConversationHeadersOnly":[{"bubbleId":"m","type":1}]}`, when, when),
			"bubbleId:c:m":   fmt.Sprintf(`{"type":1,"text":"hello","createdAt":%s}`, when),
		})
		if r := importAll(t, src, dst, nil); r.Conversations != 1 || r.Damaged() != 0 {
			t.Errorf("created at %s: %+v", when, r)
		}
	}
}

// A row that is too large to be read is reported and does not affect other rows.
func TestARowThatIsTooLargeCostsNoOther(t *testing.T) {
	const name = "composer.content.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	large := strings.Repeat("x", 100<<10)
	rows := map[string]string{
		"composerData:c": `{"_v":16,"composerId":"c","originalFileStates":{"file:///a":{}},
			"fullConversationHeadersOnly":[{"bubbleId":"m1","type":1},{"bubbleId":"m2","type":2},{"bubbleId":"m3","type":1},{"bubbleId":"m4","type":2}]}`,
		"bubbleId:c:m1":            `{"type":1,"text":"first, about ` + name + `"}`,
		"bubbleId:c:m2":            `{"type":2,"text":"second ` + large + `"}`,
		"bubbleId:c:m3":            `{"type":1,"text":"third"}`,
		"bubbleId:c:m4":            `{"type":2,"text":"fourth"}`,
		"bubbleId:c:orphan1":       `{"type":2,"text":"` + large + `"}`,
		"bubbleId:c:orphan2":       `{"type":2,"text":"last"}`,
		"ofsContent:c:file:///a":   large,
		"codeBlockDiff:c:1":        large,
		"codeBlockDiff:c:2":        `{"kept":true}`,
		"agentKv:checkpoint:c":     large,
		"bc-1:cloudAgent:metadata": large,
		"bc-2:cloudAgent:metadata": "***",
		name:                       large,
	}
	rows["composerData:b"] = `{"_v":16,"composerId":"b","name":"` + large + `"}`
	whole := editorStore(t, rows)
	src := cursortest.Open(t, whole.Path(), &cursor.Options{MaxValue: 64 << 10})
	db, dst := cursortest.OpenDB(t)
	r := importAll(t, src, dst, nil)
	if r.Conversations != 1 {
		t.Fatalf("result %+v", r)
	}
	text := jsonl(t, db, "c")
	for _, want := range []string{"first", "third", "fourth"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	kept := map[string]bool{}
	for _, row := range sourceRows(t, dst, "c") {
		kept[row.Key] = true
	}
	for _, key := range []string{"bubbleId:c:m4", "bubbleId:c:orphan2", "codeBlockDiff:c:2", "composerData:c"} {
		if !kept[key] {
			t.Errorf("%s was not kept", key)
		}
	}
	why := reasons(r)
	for _, key := range []string{"b", "bubbleId:c:m2", "bubbleId:c:orphan1", "codeBlockDiff:c:1", "ofsContent:c:file:///a", name, "bc-1:cloudAgent:metadata", "bc-2:cloudAgent:metadata"} {
		if why[key] == "" {
			t.Errorf("nothing about %s in %v", key, why)
		}
	}
	sound(t, db, 1e6)
}

// A line that a crash cut off, and that the next one continues, does not affect other
// lines.
func TestALineThatIsNoObjectCostsNoOther(t *testing.T) {
	dir := linesWithState(t)
	for _, name := range []string{"agents.ndjson", "checkpoints.ndjson", "runs.ndjson", "run_events.ndjson"} {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append([]byte("{\"agentId\":\"x\",\"na{\"agentId\":\"y\"}\n"), data...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, want := cursortest.OpenDB(t)
	expected := importAll(t, cursortest.Open(t, linesWithState(t), nil), want, nil)
	db, dst := cursortest.OpenDB(t)
	r := importAll(t, cursortest.Open(t, dir, nil), dst, nil)
	if r.Conversations != expected.Conversations || r.Blobs < expected.Blobs || r.Damaged() == 0 {
		t.Errorf("result %+v, want the conversations of %+v, and the damage", r, expected)
	}
	sound(t, db, 1e6)
}
