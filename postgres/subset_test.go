package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// excluded are the features that docs/format/postgres.md rules out, so that other engines
// with the protocol can be used. A statement may be built of several literals; each is
// looked at.
var excluded = map[string]*regexp.Regexp{
	"sequences":         regexp.MustCompile(`(?i)\b(nextval|currval|setval|(big|small)?serial|sequence|generated\s+(always|by))\b`),
	"triggers":          regexp.MustCompile(`(?i)\b(trigger|create\s+rule)\b`),
	"extensions":        regexp.MustCompile(`(?i)\bextension\b`),
	"stored procedures": regexp.MustCompile(`(?i)(\b(create\s+(or\s+replace\s+)?(function|procedure)|language\s+\w+|call\s+\w+\s*\()|\$\$)`),
	"advisory locks":    regexp.MustCompile(`(?i)\bpg_(try_)?advisory`),
	"table locks":       regexp.MustCompile(`(?i)\block\s+table\b`),
	"system columns":    regexp.MustCompile(`(?i)\b(ctid|xmin|xmax|tableoid)\b`),
	"system catalogs":   regexp.MustCompile(`(?i)\bpg_(catalog|class|stat\w*|locks|settings|attribute|index|namespace|type|proc)\b`),
	"server functions":  regexp.MustCompile(`(?i)\bpg_[a-z_]+\s*\(`),
	"large objects":     regexp.MustCompile(`(?i)\blo_\w+\s*\(`),
	"copy":              regexp.MustCompile(`(?i)\bcopy\s+\S+\s+(from|to)\b`),
	"partitions":        regexp.MustCompile(`(?i)\b(partition\s+of|inherits)\b`),
	"temporary tables":  regexp.MustCompile(`(?i)\b(temp|temporary|unlogged)\s+table\b`),
	"views":             regexp.MustCompile(`(?i)\bcreate\s+(materialized\s+)?view\b`),
	"isolation levels":  regexp.MustCompile(`(?i)\bisolation\s+level\b`),
	"merge":             regexp.MustCompile(`(?i)\bmerge\s+into\b`),
	"cursors":           regexp.MustCompile(`(?i)\bdeclare\s+\w+\s+cursor\b`),
	"full text":         regexp.MustCompile(`(?i)\b(tsvector|tsquery|to_ts\w+|using\s+(gin|gist|brin))\b`),
}

// tolerated are the exceptions, by folder: hints to other nodes, without which watchers
// poll, and the snapshot of a search.
var tolerated = map[string][]string{
	".":                       {"pg_notify("},
	"../search/pgsearch":      {"ISOLATION LEVEL REPEATABLE READ READ ONLY"},
	filepath.Join("schema"):   nil,
	filepath.Join("../fleet"): nil,
}

// statement reports whether a literal is SQL, or a part of it.
var statement = regexp.MustCompile(`(?i)\b(begin|commit|select|insert\s+into|update|delete\s+from|create\s+(table|index|schema|unique)|alter\s+table|drop|with\s+\w+\s+as|for\s+(update|share)|on\s+conflict|listen|returning)\b`)

// TestStatementsKeepToTheSubset reads every statement in the sources.
func TestStatementsKeepToTheSubset(t *testing.T) {
	found := 0
	for dir, except := range tolerated {
		for where, text := range literals(t, dir) {
			if !statement.MatchString(text) {
				continue
			}
			found++
			for _, word := range except {
				text = strings.ReplaceAll(text, word, "")
			}
			for feature, pattern := range excluded {
				if match := pattern.FindString(text); match != "" {
					t.Errorf("%s uses %s (%q): %s", where, feature, match, text)
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("found %d statements only", found)
	}
}

func TestTheSubsetRefusesWhatItExcludes(t *testing.T) {
	for feature, text := range map[string]string{
		"sequences": `CREATE TABLE a (id bigserial)`, "triggers": `CREATE TRIGGER a`, "extensions": `CREATE EXTENSION a`,
		"stored procedures": `CREATE OR REPLACE FUNCTION a()`, "advisory locks": `SELECT pg_advisory_lock(1)`, "table locks": `LOCK TABLE a`,
		"system columns": `SELECT ctid FROM a`, "system catalogs": `SELECT 1 FROM pg_class`, "server functions": `SELECT pg_sleep(1)`,
		"large objects": `SELECT lo_open(1, 2)`, "copy": `COPY a FROM STDIN`, "partitions": `CREATE TABLE a PARTITION OF b`,
		"temporary tables": `CREATE TEMP TABLE a`, "views": `CREATE VIEW a`, "isolation levels": `BEGIN ISOLATION LEVEL SERIALIZABLE`,
		"merge": `MERGE INTO a`, "cursors": `DECLARE a CURSOR`, "full text": `CREATE INDEX a ON b USING gin (c)`,
	} {
		if !excluded[feature].MatchString(text) {
			t.Errorf("%s: %s is not refused", feature, text)
		}
	}
}

// literals returns the string literals of a folder's sources, and its SQL files, by their
// places.
func literals(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasSuffix(path, ".sql"):
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[path] = string(text)
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Error(err)
					}
					found[files.Position(lit.Pos()).String()] = text
				}
				return true
			})
		}
	}
	return found
}
