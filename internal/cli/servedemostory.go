package cli

import "fmt"

// The stories of 'stet serve --demo', besides that of 'stet demo'.

const demoJitter = "With *full jitter* each wait is a random part of the longest one, so that clients which failed together do not come back together:\n\n" +
	"| attempt | wait without jitter | with full jitter |\n|---|---|---|\n| 1 | 50 ms | 0–50 ms |\n| 2 | 200 ms | 0–200 ms |\n| 3 | 800 ms | 0–800 ms |\n\n" +
	"I would take it as soon as more than one process charges customers. For one it only makes tests harder to read."

var notesStart = map[string]string{
	"README.md":         "# notes\n\nA notebook for the terminal.\n",
	"pyproject.toml":    "[project]\nname = \"notes\"\nversion = \"0.3.0\"\n",
	"notes/__init__.py": "\"\"\"A notebook.\"\"\"\n",
	"notes/store.py": `"""Where notes live."""

import json
from pathlib import Path


class Store:
    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[dict]:
        if not self.path.exists():
            return []
        return json.loads(self.path.read_text())

    def add(self, title: str, text: str) -> None:
        notes = self.all()
        notes.append({"title": title, "text": text})
        self.path.write_text(json.dumps(notes, indent=2))
`,
}

const notesExport = `"""Writes notes as Markdown files."""

from pathlib import Path

from notes.store import Store


def export(store: Store, out: Path) -> int:
    out.mkdir(parents=True, exist_ok=True)
    for n, note in enumerate(store.all(), start=1):
        (out / f"{n:03}.md").write_text(f"# {note['title']}\n\n{note['text']}\n")
    return n
`

const notesExportSafe = `"""Writes notes as Markdown files."""

import re
from pathlib import Path

from notes.store import Store


def slug(title: str) -> str:
    """A name for a file that every system takes."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled"


def export(store: Store, out: Path) -> int:
    out.mkdir(parents=True, exist_ok=True)
    notes = store.all()
    for n, note in enumerate(notes, start=1):
        path = out / f"{n:03}-{slug(note['title'])}.md"
        path.write_text(f"# {note['title']}\n\n{note['text']}\n", encoding="utf-8")
    return len(notes)
`

var notesScenes = []scene{
	{
		ask: "Can we export all notes as Markdown files, one for each note?", message: "notes-1", minutes: 4,
		think: "The store gives dictionaries with title and text. Files need names: a number keeps their order. If there are no notes, n is never set; a test should cover that.",
		say:   "Notes are now exported with `notes.export.export(store, out)`:\n\n```python\nfrom pathlib import Path\nfrom notes.export import export\nfrom notes.store import Store\n\nexport(Store(Path(\"notes.json\")), Path(\"out\"))\n```\n\nFiles are called `001.md`, `002.md`, … so that they keep their order.",
		files: map[string]string{"notes/export.py": notesExport},
		runs:  []string{"python -m compileall -q notes"},
	},
	{
		ask: "It fails without notes, and I would like the title in the name of the file.", message: "notes-2", minutes: 6,
		think: "Two things: count from the list instead of the loop's variable, and a slug. Titles may hold slashes and emoji.",
		fails: "pytest -q",
		say:   "Both are done:\n\n- the number of notes is counted before the loop, so an empty store exports nothing and returns 0;\n- names are like `007-shopping-list.md`; letters that are not plain become dashes.\n\nThe failing test from before passes now.",
		files: map[string]string{
			"notes/export.py":      notesExportSafe,
			"tests/test_export.py": "from notes.export import export, slug\nfrom notes.store import Store\n\n\ndef test_empty(tmp_path):\n    assert export(Store(tmp_path / \"none.json\"), tmp_path / \"out\") == 0\n\n\ndef test_slug():\n    assert slug(\"Shopping / list ✓\") == \"shopping-list\"\n",
		},
		runs: []string{"pytest -q", "ruff check ."},
	},
	{
		ask: "Put everything into one big file instead", message: "notes-3", minutes: 3, back: 2,
		say: "All notes are in one `notes.md` now, with a table of contents.",
		files: map[string]string{
			"notes/export.py":      "\"\"\"Writes notes as one Markdown file.\"\"\"\n\nfrom pathlib import Path\n\nfrom notes.store import Store\n\n\ndef export(store: Store, out: Path) -> int:\n    notes = store.all()\n    toc = \"\\n\".join(f\"- {n['title']}\" for n in notes)\n    body = \"\\n\\n\".join(f\"## {n['title']}\\n\\n{n['text']}\" for n in notes)\n    out.write_text(f\"# Notes\\n\\n{toc}\\n\\n{body}\\n\")\n    return len(notes)\n",
			"tests/test_export.py": "",
		},
		runs: []string{"pytest -q"},
	},
	{
		ask: "Add a command for it: notes export DIR", message: "notes-4", minutes: 5,
		say: "`notes export DIR` writes the files and prints how many there are.",
		files: map[string]string{
			"notes/__main__.py": "\"\"\"The command line.\"\"\"\n\nimport sys\nfrom pathlib import Path\n\nfrom notes.export import export\nfrom notes.store import Store\n\n\ndef main(argv: list[str]) -> int:\n    match argv:\n        case [\"export\", out]:\n            print(export(Store(Path(\"notes.json\")), Path(out)), \"notes\")\n            return 0\n    print(\"usage: notes export DIR\", file=sys.stderr)\n    return 2\n\n\nif __name__ == \"__main__\":\n    sys.exit(main(sys.argv[1:]))\n",
		},
		runs: []string{"python -m notes export /tmp/out"},
	},
}

var priceScenes = []scene{
	{
		ask: "The price list takes two seconds. Find out why, and make it fast.", message: "price-1", minutes: 8,
		think: "I should not guess. A subagent can read the handlers while I set up a benchmark.",
		sub: &helper{
			id: "explore-prices", ask: "Where are prices read, and how often for one request?",
			think: "Searching for queries in loops first.",
			say:   "`prices.List` asks the database once for **every product**. For 1,800 products that is 1,800 queries for one request.\n\n1. `prices/list.go:14` reads the ids\n2. `prices/list.go:21` reads each price in the loop",
			runs:  []string{"rg -n 'QueryRow' --type go", "rg -n 'for .* range' prices/"},
		},
		say: "It is a query in a loop: one for every product. I replaced it by one query for all of them.\n\n| products | before | after |\n|---:|---:|---:|\n| 100 | 110 ms | 4 ms |\n| 1,800 | 1,960 ms | 21 ms |",
		files: map[string]string{
			"prices/list.go":      "// Package prices reads what things cost.\npackage prices\n\nimport \"context\"\n\n// Source answers for many products at once.\ntype Source interface {\n\tPrices(ctx context.Context, products []string) (map[string]int64, error)\n}\n\n// List returns the prices of all products, with one question.\nfunc List(ctx context.Context, s Source, products []string) (map[string]int64, error) {\n\tif len(products) == 0 {\n\t\treturn nil, nil\n\t}\n\treturn s.Prices(ctx, products)\n}\n",
			"prices/list_test.go": "package prices\n\nimport (\n\t\"context\"\n\t\"testing\"\n)\n\ntype counting struct{ asked int }\n\nfunc (c *counting) Prices(context.Context, []string) (map[string]int64, error) {\n\tc.asked++\n\treturn nil, nil\n}\n\nfunc TestOneQuestion(t *testing.T) {\n\tc := &counting{}\n\tif _, err := List(context.Background(), c, []string{\"a\", \"b\"}); err != nil || c.asked != 1 {\n\t\tt.Errorf(\"asked %d times, error %v\", c.asked, err)\n\t}\n}\n",
		},
		runs: []string{"go test -bench . ./prices"},
	},
	{
		ask: "Write down what we learned.", message: "price-2", minutes: 2,
		say:   "There is a short note in `docs/performance.md`.",
		files: map[string]string{"docs/performance.md": "# Performance\n\nNever ask the database in a loop. The price list went from 1,960 ms to 21 ms\nwhen it asked once.\n"},
	},
}

var syncScenes = []scene{
	{
		ask: "test_sync fails every tenth run or so. Why?", message: "sync-1", minutes: 7,
		think: "Every tenth run smells of time. The test waits 50 ms for a thread; on a busy machine that is too short.",
		fails: "pytest -q --count 50 tests/test_sync.py",
		say:   "The test waits 50 ms for a thread and hopes. I made `Sync.run` return when the work is done, and the test waits for that instead of the clock. 500 runs, no failure.",
		files: map[string]string{
			"notes/sync.py":      "\"\"\"Sends notes to another machine.\"\"\"\n\nfrom concurrent.futures import Future, ThreadPoolExecutor\n\n\nclass Sync:\n    def __init__(self) -> None:\n        self.pool = ThreadPoolExecutor(max_workers=1)\n        self.sent: list[str] = []\n\n    def run(self, notes: list[str]) -> Future[None]:\n        return self.pool.submit(self.sent.extend, notes)\n",
			"tests/test_sync.py": "from notes.sync import Sync\n\n\ndef test_sync():\n    s = Sync()\n    s.run([\"a\"]).result(timeout=30)\n    assert s.sent == [\"a\"]\n",
		},
		runs: []string{"pytest -q --count 500 tests/test_sync.py"},
	},
}

var liveAsks = []struct{ ask, think, say string }{
	{"Split the search module: parsing here, matching there.", "Parsing has no state, so it can be a function of its own. Matching needs the index.", "The words of a query are now parsed in one place. Matching comes next."},
	{"Now the matching.", "An inverted index from word to notes; all words must match.", "Matching uses an index from words to notes. A query with several words takes the intersection."},
	{"Does it rank the results?", "It does not yet. Count how often the words occur.", "Results are ranked by how often the words occur, the title counting twice."},
	{"Add tests for empty queries.", "An empty query should find nothing rather than everything.", "An empty query finds nothing. There is a test for that, and one for queries of blanks."},
}

// liveScene is the n-th turn of the live agent.
func liveScene(n int) scene {
	part := liveAsks[(n-1)%len(liveAsks)]
	name := []string{"parse", "match", "rank", "empty"}[(n-1)%len(liveAsks)]
	return scene{
		ask: part.ask, message: fmt.Sprintf("live-%d", n), think: part.think, say: part.say,
		files: map[string]string{
			"notes/search_" + name + ".py": fmt.Sprintf("\"\"\"Search: %s, revision %d.\"\"\"\n\n\ndef %s(words: list[str], notes: list[str]) -> list[int]:\n    wanted = {w.lower() for w in words if w.strip()}\n    if not wanted:\n        return []\n    return [i for i, n in enumerate(notes) if wanted <= set(n.lower().split())]\n", name, n, name),
		},
		runs: []string{"pytest -q tests/test_search.py"},
	}
}
