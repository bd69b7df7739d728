package settings_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/settings"
)

func entry(event, path string) foreign.HookEntry {
	return foreign.HookEntry{
		List: []string{"hooks", event}, Ours: "hook x " + event,
		Value: fmt.Sprintf(`{"matcher":"*","hooks":[{"type":"command","command":"%s hook x %s","timeout":10}]}`, path, event),
	}
}

func entries(path string) []foreign.HookEntry {
	return []foreign.HookEntry{entry("PreToolUse", path), entry("PostToolUse", path), entry("Stop", path)}
}

// kinds are settings that people have.
var kinds = map[string]string{
	"missing":            "",
	"blank":              "\n",
	"empty object":       "{}",
	"empty with newline": "{}\n",
	"two spaces":         "{\n  \"model\": \"opus\",\n  \"permissions\": {\"allow\": [\"Bash\"]}\n}\n",
	"four spaces":        "{\n    \"model\": \"opus\"\n}",
	"tabs":               "{\n\t\"model\": \"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t}\n}\n",
	"CRLF and BOM":       "\ufeff{\r\n  \"model\": \"opus\"\r\n}\r\n",
	"one line":           `{"model":"opus","hooks":{"Other":[1]}}`,
	"comments": "// mine\n{\n  /* all */ \"hooks\": { // here\n    \"Stop\": [\n      {\"hooks\": []} // last\n      // more\n    ], // done\n" +
		"  },\n  \"x\": 1, // trailing\n}\n// end",
	"others' hooks":    "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": []\n      }\n    ]\n  },\n  \"z\": null\n}\n",
	"empty containers": "{\"hooks\": {\n}, \"a\": { }}",
	"empty lists":      "{\n  \"hooks\": {\"Stop\": [ ], \"PreToolUse\": [\n  ]}\n}\n",
	"trailing commas":  "{\"hooks\": {\"Stop\": [1, ], },\n}",
}

func TestAddAndRemove(t *testing.T) {
	for name, src := range kinds {
		t.Run(name, func(t *testing.T) { roundTrip(t, src, entries("/bin/stet")) })
	}
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func roundTrip(t fataler, src string, es []foreign.HookEntry) {
	t.Helper()
	added, err := settings.Add([]byte(src), es)
	if err != nil {
		t.Fatalf("add to %q: %v", src, err)
	}
	if settings.Has([]byte(src), es) || !settings.Has(added, es) {
		t.Fatalf("what was added to %q is not there:\n%s", src, added)
	}
	if again, err := settings.Add(added, es); err != nil || string(again) != string(added) {
		t.Fatalf("the second time changes\n%s\nto\n%s\n%v", added, again, err)
	}
	removed, err := settings.Remove(added, es)
	if err != nil || string(removed) != src {
		t.Fatalf("got   %q, %v\nwant  %q\nadded %s", removed, err, src, added)
	}
}

func TestLooks(t *testing.T) {
	got, err := settings.Add([]byte("{\n    \"model\": \"opus\"\n}\n"), entries("/bin/stet")[2:])
	if err != nil {
		t.Fatal(err)
	}
	want := `{
    "model": "opus",
    "hooks": {
        "Stop": [
            {
                "matcher": "*",
                "hooks": [
                    {
                        "type": "command",
                        "command": "/bin/stet hook x Stop",
                        "timeout": 10
                    }
                ]
            }
        ]
    }
}
`
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
}

func TestEarlierEntryIsReplaced(t *testing.T) {
	for name, src := range kinds {
		old, err := settings.Add([]byte(src), entries("/old/stet"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := settings.Add(old, entries("/new/stet"))
		if err != nil || strings.Contains(string(got), "/old/") || strings.Count(string(got), "/new/") != 3 {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if back, err := settings.Remove(got, entries("/newer/stet")); err != nil || string(back) != src {
			t.Errorf("%s: got %q, %v", name, back, err)
		}
	}
}

func TestOthersStay(t *testing.T) {
	added, err := settings.Add([]byte("{\n  \"a\": 1\n}\n"), entries("/bin/stet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"Stop": [`, `"Stop": [ {"mine": 1},`},
		{`"timeout": 10
          }`, `"timeout": 10
          }, {"type": "command", "command": "mine"}`},
		{`"a": 1`, `"a": 1, "mine": 2`},
		{`  "hooks": {`, `  "mine": [], "hooks": { // mine`},
	} {
		changed := strings.Replace(string(added), change[0], change[1], 1)
		got, err := settings.Remove([]byte(changed), entries("/bin/stet"))
		if changed == string(added) || err != nil || strings.Contains(string(got), "stet") || !strings.Contains(string(got), "mine") {
			t.Errorf("after %q: %v\n%s", change[1], err, got)
		}
		if _, err := settings.Add(got, entries("/bin/stet")); err != nil {
			t.Errorf("after %q the rest does not parse: %v\n%s", change[1], err, got)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, src := range []string{
		"{", "[]", "nothing", "// only a comment", `{"a":1}{}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"hooks":[]}`, `{"hooks":{"Stop":{}}}`,
		`{"hooks":{},"hooks":{}}`, `{"hooks":{"Stop":[],"Stop":[]}}`, `{"a":"\x"}`, `{"a":/*`, "{\"a\":\"\n\"}", strings.Repeat("[", 1000),
	} {
		if got, err := settings.Add([]byte(src), entries("/bin/stet")); !errors.Is(err, foreign.ErrSettings) {
			t.Errorf("%.40q gives %q, %v", src, got, err)
		}
	}
}

func TestDefaultsOfANewFile(t *testing.T) {
	es := entries("/bin/stet")
	for i := range es {
		es[i].Defaults = [][2]string{{"version", "1"}}
	}
	added, err := settings.Add(nil, es)
	if err != nil || !strings.Contains(string(added), "\"version\": 1") {
		t.Errorf("got %s, %v", added, err)
	}
	for _, src := range []string{"", "{\n  \"version\": 1\n}\n", "{\n  \"hooks\": {},\n  \"version\": 1\n}\n"} {
		roundTrip(t, src, es)
	}
}

func TestAnyDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := document(t, 3)
		es := entries("/bin/stet")
		if _, err := settings.Add([]byte(doc), es); err != nil {
			if !errors.Is(err, foreign.ErrSettings) {
				t.Fatalf("%q: %v", doc, err)
			}
			return
		}
		roundTrip(t, doc, es)
	})
}

// document draws an object with comments and blanks between its parts.
func document(t *rapid.T, depth int) string {
	gap := rapid.SampledFrom([]string{"", "", " ", "\n", "\n  ", "\r\n\t", " /* c */ ", " // c\n", "\n// a\n  // b\n\t"})
	key := rapid.SampledFrom([]string{"hooks", "Stop", "PreToolUse", "a", "b"})
	var value func(depth int, object bool) string
	value = func(depth int, object bool) string {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if object {
			kind = 0
		}
		if depth <= 0 {
			kind = 5
		}
		if kind > 2 {
			return rapid.SampledFrom([]string{"1", "null", `"x"`, `"a/*\"*/b"`, "-2.5e3", "true"}).Draw(t, "scalar")
		}
		open, end := "{", "}"
		if kind == 2 {
			open, end = "[", "]"
		}
		out, used := open, map[string]bool{}
		n := rapid.IntRange(0, 4).Draw(t, "parts")
		for i := 0; i < n; i++ {
			out += gap.Draw(t, "gap")
			if open == "{" {
				k := key.Draw(t, "key")
				for used[k] {
					k += "'"
				}
				used[k] = true
				name, _ := json.Marshal(k)
				out += string(name) + gap.Draw(t, "gap") + ":" + gap.Draw(t, "gap")
				out += value(depth-1, k == "hooks" && rapid.Bool().Draw(t, "object"))
			} else {
				out += value(depth-1, false)
			}
			out += gap.Draw(t, "gap")
			if i < n-1 || rapid.IntRange(0, 5).Draw(t, "comma") == 0 {
				out += ","
			}
		}
		return out + gap.Draw(t, "gap") + end
	}
	return rapid.SampledFrom([]string{"", "\ufeff", "\n"}).Draw(t, "begin") + value(depth, true) + gap.Draw(t, "gap")
}

func FuzzAdd(f *testing.F) {
	for _, src := range kinds {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		es := entries("/bin/stet")
		if _, err := settings.Add([]byte(src), es); err != nil {
			return
		}
		if without, err := settings.Remove([]byte(src), es); err != nil || string(without) != src {
			return // it has such entries
		}
		roundTrip(t, src, es)
	})
}

// Agents write their settings again, with other escapes.
func TestEscapesAreCompared(t *testing.T) {
	e := foreign.HookEntry{List: []string{"hooks", "Stop"}, Ours: `--store '/a&b/"c"\d' hook x Stop`, Value: `{"command":"stet --store '/a\u0026b/\"c\"\\d' hook x Stop"}`}
	es := []foreign.HookEntry{e}
	roundTrip(t, "{\n  \"a\": 1\n}\n", es)
	added, err := settings.Add([]byte("{}"), es)
	if err != nil {
		t.Fatal(err)
	}
	again := strings.Replace(string(added), `\u0026b/`, `&b\/`, 1)
	if again == string(added) || !settings.Has([]byte(again), es) {
		t.Errorf("not found in %s", again)
	}
	if removed, err := settings.Remove([]byte(again), es); err != nil || string(removed) != "{}" {
		t.Errorf("removed: %s, %v", removed, err)
	}
}

func TestValue(t *testing.T) {
	for src, want := range map[string]string{
		"": "", "{}": "", `{"b":{"a":1}}`: "", "{\n// \"a\": 2\n\"a\": true, }": "true", `{"a":1,"\u0061":[2]}`: "[2]", "{": "error",
	} {
		got, err := settings.Value([]byte(src), "a")
		if (err != nil) != (want == "error") || err == nil && string(got) != want {
			t.Errorf("%q: got %q, %v", src, got, err)
		}
	}
}
