package stet

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/stet-dev/stet"

// importMap says, for each package of ours, which others of ours it may import
// outside of tests. Data flows one way: command line and server → services →
// interfaces ← layers and drivers. A pattern that ends in /... covers a tree. Every
// package may import those in everywhere, which import none of ours.
var importMap = map[string][]string{
	// The interfaces and leaves.
	"fault":                  {},
	"blob":                   {},
	"meter":                  {},
	"meter/otelmeter":        {"meter"},
	"kv":                     {"blob"},
	"internal/private":       {},
	"keyring":                {"internal/private"},
	"access":                 {"internal/private"},
	"internal/keyspace":      {"blob", "kv"},
	"internal/rowformat":     {"kv"},
	"internal/kept":          {"blob", "kv", "gen/..."},
	"internal/highlight":     {},
	"internal/swapdir":       {},
	"internal/room":          {"blob", "workspace"},
	"bisect":                 {},
	"internal/osfile":        {},
	"internal/lru":           {},
	"internal/recall":        {},
	"internal/abreast":       {},
	"internal/minisign":      {},
	"internal/s3api":         {},
	"internal/awsconfig":     {"internal/s3api"},
	"internal/spelling":      {},
	"internal/wirecode":      {},
	"internal/unary":         {},
	"internal/overlap":       {},
	"internal/pgparams":      {},
	"internal/lookup":        {"kv", "internal/keyspace"},
	"internal/lane":          {"kv"},
	"internal/testenv":       {},
	"internal/smoke":         {},
	"internal/realservers":   {"internal/testenv", "internal/s3api"},
	"internal/scriptedmodel": {},
	"internal/suites":        {},
	"internal/realagents":    {"internal/testenv", "internal/scriptedmodel"},
	"gen/agent/v1":           {},
	"gen/anyrun/v1":          {},
	"gen/aiserver/v1":        {"gen/agent/v1", "gen/anyrun/v1"},
	"gen/stet/v1":            {"gen/agent/v1", "gen/aiserver/v1", "gen/anyrun/v1"},
	"gen/...":                {"gen/...", "internal/unary"},
	"workspace":              {"blob", "internal/swapdir"},

	// Layers and drivers.
	"blob/memblob":      {"blob"},
	"blob/cached":       {"blob", "meter", "internal/lru"},
	"blob/compressed":   {"blob", "internal/lru"},
	"blob/encrypted":    {"blob", "keyring"},
	"blob/retrying":     {"blob"},
	"blob/unsaved":      {"blob"},
	"blob/writethrough": {"blob"},
	"blob/metered":      {"blob", "meter"},
	"blob/blobtest/...": {"blob", "blob/blobtest/...", "blob/memblob", "internal/overlap", "internal/testenv"},
	"kv/memkv":          {"blob", "kv"},
	"kv/sealed":         {"blob", "kv", "keyring", "internal/keyspace"},
	"kv/kvtest/...":     {"blob", "kv", "kv/kvtest/...", "kv/memkv", "internal/keyspace", "internal/overlap", "internal/testenv"},
	"sqlite":            {"blob", "kv"},
	"postgres":          {"blob", "kv", "internal/pgparams"},
	"blob/s3blob":       {"blob", "internal/awsconfig", "internal/s3api"},
	"blob/objectblob":   {"blob"},
	"pack":              {"blob", "kv", "internal/abreast", "internal/keyspace", "internal/lru"},

	// Services.
	"conversation":      {"blob", "kv", "gen/...", "internal/abreast", "internal/keyspace", "internal/rowformat", "internal/lookup", "conversation/..."},
	"conversation/...":  {"blob", "kv", "gen/...", "internal/keyspace", "internal/rowformat", "internal/lookup", "conversation/..."},
	"checkpoint/...":    {"blob", "kv", "gen/...", "internal/keyspace", "internal/lookup", "internal/recall", "internal/swapdir", "workspace", "conversation/...", "transcript", "checkpoint/..."},
	"cloudagent/...":    {"blob", "kv", "gen/...", "internal/keyspace", "internal/rowformat", "internal/lane", "internal/lookup", "conversation/...", "cloudagent/..."},
	"thread":            {"blob", "kv", "gen/...", "internal/kept", "internal/keyspace", "internal/lane", "internal/rowformat", "conversation/graph"},
	"document":          {"blob", "kv", "gen/...", "internal/kept", "internal/keyspace", "internal/lane", "internal/rowformat", "conversation/graph"},
	"stream":            {"blob", "kv", "gen/...", "internal/keyspace", "internal/rowformat", "internal/lane", "conversation/graph"},
	"subscription":      {"kv", "gen/...", "internal/keyspace", "internal/rowformat", "internal/lane", "stream"},
	"kvstream/...":      {"blob", "gen/...", "kvstream/..."},
	"agentrun/...":      {"blob", "kv", "gen/...", "internal/keyspace", "conversation/...", "checkpoint/...", "cloudagent/...", "transcript", "kvstream/...", "agentrun/...", "internal/wirecode"},
	"transcript/...":    {"blob", "conversation/...", "gen/...", "transcript/..."},
	"linediff":          {"blob", "workspace"},
	"blame":             {"blob", "conversation", "checkpoint", "internal/recall", "linediff", "timeline", "transcript", "workspace"},
	"timeline":          {"blob", "gen/...", "conversation", "checkpoint", "transcript"},
	"transfer":          {"blob", "kv", "gen/...", "internal/keyspace", "conversation/...", "checkpoint", "cloudagent", "document", "stream", "thread", "workspace", "kv/memkv", "mirror"},
	"search/...":        {"blob", "kv", "conversation/...", "transcript", "gen/...", "internal/keyspace", "internal/pgparams", "search/..."},
	"search/searchtest": {"blob", "blob/memblob", "kv", "kv/memkv", "conversation/...", "transcript", "gen/...", "search"},
	"usage":             {"blob", "kv", "conversation/...", "checkpoint", "cloudagent", "workspace"},
	"foreign/...":       {"blob", "kv", "gen/...", "internal/keyspace", "conversation/...", "checkpoint/...", "workspace", "foreign/...", "internal/spelling"},
	"foreign/cursor":    {"blob", "gen/...", "conversation/...", "checkpoint/jsoncheckpoint", "foreign/internal/readonly", "foreign/internal/newfile"}, // reads, and writes new files; cursorimport and cursorexport know stet stores

	// The export for the editor writes messages, which transcript reads.
	"foreign/cursor/cursorexport": {"blob", "kv", "internal/keyspace", "conversation/...", "checkpoint/...", "workspace", "transcript", "foreign/cursor/..."},

	// Tests of both open stet stores by the front door.
	"foreign/cursor/internal/cursortest": {".", "internal/keyspace", "foreign/cursor/..."},

	// Upkeep works on what the services keep, by their rows and roots, and on the
	// layers that can exchange what is stored. It knows no driver and no front door.
	"upkeep": {"fault", "blob", "blob/encrypted", "kv", "kv/memkv", "kv/sealed", "keyring", "pack", "conversation/...", "checkpoint/...", "cloudagent", "document", "stream", "subscription", "thread", "workspace", "mirror", "internal/abreast", "internal/keyspace"},

	// A purge asks the services and upkeep to change what they keep, and finds what must
	// change by the bytes of blobs and rows.
	"purge": {"fault", "blob", "kv", "kv/memkv", "conversation/...", "checkpoint/...", "cloudagent", "document", "stream", "thread", "workspace", "mirror", "upkeep", "internal/keyspace"},

	// A proof reads rows and blobs, and follows what they name.
	"proof": {"blob", "kv", "gen/...", "internal/keyspace", "internal/private", "keyring", "conversation/graph", "checkpoint", "workspace"},

	// A mirror knows the layer that writes through, and holds blobs for the collector.
	"mirror": {"blob", "blob/writethrough", "meter", "kv", "conversation/graph", "internal/keyspace"},

	// The front door, and those who come through it.
	".":                    {"usage", "meter", "blob/...", "kv/...", "keyring", "sqlite", "pack", "conversation/...", "checkpoint/...", "workspace", "cloudagent/...", "agentrun/...", "transcript/...", "search/...", "gen/...", "internal/keyspace", "internal/recall", "upkeep", "mirror", "purge", "document", "stream", "thread"},
	"fleet":                {".", "meter/...", "checkpoint", "access", "blob/...", "kv/...", "keyring", "postgres", "pack", "conversation/...", "cloudagent/...", "search/...", "sqlite", "server", "internal/keyspace", "upkeep"},
	"adapters/eino":        {"document"},
	"adapters/gocloud":     {"blob", "document", "kv", "fault"},
	"agenttools":           {".", "blob", "blob/unsaved", "checkpoint", "conversation", "linediff", "search", "timeline", "transcript", "workspace"},
	"internal/cli/...":     {".", "meter/...", "agenttools", "bisect", "fleet", "pack", "postgres", "access", "blob/...", "kv/...", "keyring", "sqlite", "conversation/...", "checkpoint/...", "workspace", "cloudagent/...", "agentrun/...", "transcript/...", "search/...", "linediff", "blame", "timeline", "transfer", "usage", "foreign/...", "server/...", "client/...", "kvstream/...", "web/...", "gen/...", "internal/attempt", "internal/demo", "internal/private", "internal/room", "internal/supervise", "internal/spelling", "upkeep", "mirror", "proof", "purge", "internal/cli/shortcut"},
	"server/...":           {".", "server/...", "meter/otelmeter", "access", "blob", "blob/unsaved", "kv", "keyring", "sqlite", "conversation/...", "checkpoint/...", "workspace", "cloudagent/...", "agentrun/...", "kvstream/...", "transcript/...", "search/...", "linediff", "blame", "timeline", "transfer", "usage", "web/...", "gen/...", "internal/attempt", "internal/highlight", "internal/private", "internal/spelling", "internal/unary", "internal/wirecode", "upkeep", "document", "stream", "subscription", "thread"},
	"server/internal/wire": {"blob", "conversation/...", "gen/..."},
	"server/page":          {".", "blame", "blob", "kv", "conversation/...", "checkpoint", "cloudagent", "transcript", "timeline", "usage", "gen/...", "internal/attempt", "internal/highlight", "server/internal/wire"},
	"server/streams":       {"internal/wirecode", "stream", "subscription"},
	"web/...":              {".", "blob", "conversation/...", "checkpoint/...", "transcript/...", "search/...", "cloudagent/..."},
	"client/...":           {"blob", "kv", "cloudagent/...", "transfer", "gen/..."},
	"internal/tools/...":   {".", "blob/...", "kv/...", "sqlite", "conversation/...", "checkpoint/...", "workspace", "cloudagent", "search", "gen/...", "internal/..."},
	"internal/supervise":   {"workspace"},
	"internal/attempt":     {"blob", "checkpoint", "conversation", "gen/..."},
	"internal/demo":        {".", "blob", "cloudagent", "checkpoint", "conversation", "foreign", "foreign/intake", "gen/..."},
	"internal/populate":    {"conversation/...", "gen/..."},
	"cmd/stet":             {"internal/cli", "internal/cli/unhurried"},
	"cmd/stet-hook":        {"internal/cli/shortcut"},
}

// everywhere lists the leaves that hold no data and that all packages speak with.
var everywhere = []string{"fault", "internal/osfile"}

func TestImportMap(t *testing.T) {
	for pkg, imports := range ourImports(t) {
		rule, ok := ruleFor(pkg)
		if !ok {
			t.Errorf("%s has no row in the import map", pkg)
			continue
		}
		for _, imported := range imports {
			if slices.Contains(everywhere, imported) {
				continue
			}
			if !slices.ContainsFunc(rule, func(pattern string) bool { return covers(pattern, imported) }) {
				t.Errorf("%s may not import %s", pkg, imported)
			}
		}
	}
}

// ruleFor prefers an exact row, then the longest pattern.
func ruleFor(pkg string) ([]string, bool) {
	if rule, ok := importMap[pkg]; ok {
		return rule, true
	}
	best := ""
	for pattern := range importMap {
		if strings.HasSuffix(pattern, "/...") && covers(pattern, pkg) && len(pattern) > len(best) {
			best = pattern
		}
	}
	return importMap[best], best != ""
}

func covers(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pattern == pkg
}

func TestLeavesThatAreEverywhere(t *testing.T) {
	for _, pkg := range everywhere {
		if rule, ok := importMap[pkg]; !ok || len(rule) > 0 {
			t.Errorf("%s is imported everywhere and may import %q", pkg, rule)
		}
	}
}

func TestPackageDocs(t *testing.T) {
	documented := make(map[string]bool)
	eachFile(t, func(pkg, file string, fset *token.FileSet) {
		f, err := parser.ParseFile(fset, file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		doc := f.Doc.Text()
		documented[pkg] = documented[pkg] || strings.HasPrefix(doc, "Package ") || strings.HasPrefix(doc, "Command ")
	})
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// ourImports returns the packages of this module with their imports of it.
func ourImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := make(map[string][]string)
	eachFile(t, func(pkg, file string, fset *token.FileSet) {
		f, err := parser.ParseFile(fset, file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := imports[pkg]; !ok {
			imports[pkg] = nil
		}
		for _, spec := range f.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if name == module {
				name += "/."
			}
			if rest, ok := strings.CutPrefix(name, module+"/"); ok && !slices.Contains(imports[pkg], rest) {
				imports[pkg] = append(imports[pkg], rest)
			}
		}
	})
	return imports
}

// eachFile calls fn for every Go file that is not a test.
func eachFile(t *testing.T, fn func(pkg, file string, fset *token.FileSet)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "examples") {
				return filepath.SkipDir
			}
			return nil
		}
		generated := strings.HasSuffix(name, ".connect.go") // has no package comment, and no choice
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !generated {
			fn(path.Dir(filepath.ToSlash(file)), file, fset)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
