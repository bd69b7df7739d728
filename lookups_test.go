package stet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lookups are the places that may ask at run time whether a value can do more than
// its type says, with the reason for each. What a stack needs of the store below is
// handed over where the stack is built: a look-up would depend on every layer in
// between passing the ability on, and could go around one that changes bytes.
var lookups = map[string]string{
	"blob: Streamer":   "like io.WriterTo: Open and PutFrom do the same without it, in more memory",
	"blob: ManyReader": "like io.WriterTo: ReadMany does the same without it, in more time",

	"agentrun: Repeater": "an optional method of the caller's executor; without it no call is repeated",
	"agentrun: Spawner":  "an optional method of the caller's agent; without it it starts no subagents",

	"blob/blobtest: blob.Arrivals":          "the suite runs the cases of a contract that the store claims to keep",
	"blob/blobtest/contract: blob.Lister":   "the suite runs the cases of a contract that the store claims to keep",
	"blob/blobtest/contract: blob.Sweeper":  "the suite runs the cases of a contract that the store claims to keep",
	"blob/blobtest/contract: blob.Rewriter": "the suite runs the cases of a contract that the store claims to keep",
	"blob/blobtest/contract: arriving":      "the suite runs the cases of a contract that the store claims to keep",
	"blob/blobtest/contract: exchanger":     "the suite runs the cases of a contract that the store claims to keep",
	"kv/kvtest/kvcases: blob.Sweeper":       "the suite runs the cases of a contract that the store claims to keep",
	"search/searchtest: dumper":             "the suite runs the cases of a contract that the index claims to keep",

	"fault: *sentinel": "walks a chain of errors, as errors.Is does",
	"fault: classed":   "walks a chain of errors, as errors.Is does",
	"fault: interface": "walks a chain of errors, as errors.Is does",

	"adapters/gocloud: **document.Store": "the Go CDK hands out what a driver has by As(any)",

	"client: interface":                 "http.Client does the same: not every transport has idle connections to close",
	"server: interface":                 "generated messages have these methods, and no interface of protobuf-go names them",
	"server: shared":                    "connect hands messages to its codecs as any",
	"internal/unary: *box":              "connect hands messages to initializers and interceptors as any",
	"server: *guest":                    "net/http hands back the connection that this package accepted as a net.Conn",
	"server: *access.Meter":             "a sync.Map gives back what this package put into it",
	"sqlite: osFile":                    "SQLite's file system hands files back by its own interface",
	"sqlite: *databaseFile":             "SQLite's file system hands files back by its own interface",
	"internal/cli: *pager":              "a stream is asked whether it is a terminal, as os.File is",
	"internal/cli: *pagedMessages":      "a stream is asked whether it is a terminal, as os.File is",
	"internal/cli: foreign.Cleaner":     "an optional method of an adapter; without it the agent deletes no sessions",
	"foreign/connect: foreign.Switched": "an optional method of an adapter; without it no setting disables the agent's hooks",
	"foreign/cursor: *DataLossError":    "the error itself is asked for, not what it wraps: only it replaces a whole row",
}

// TestLookups finds every type assertion and type switch to an interface of ours, and
// to a type of ours that has exported methods, so that it can stand behind one. Plain
// data, as in a list or a context, may be asserted anywhere.
func TestLookups(t *testing.T) {
	interfaces, methods := make(map[string]bool), make(map[string]bool)
	files := make(map[string]*ast.File)
	pkgs := make(map[string]string)
	eachFile(t, func(pkg, file string, fset *token.FileSet) {
		if strings.HasPrefix(pkg, "gen/") {
			return // messages and their oneofs, which are values
		}
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[file], pkgs[file] = f, pkg
		declared(f, pkg, interfaces, methods)
	})
	used := make(map[string]bool)
	for file, f := range files {
		for _, typ := range asserted(f) {
			name, full := typeName(f, pkgs[file], typ)
			if !interfaces[full] && !methods[full] && name != "interface" {
				continue
			}
			key := pkgs[file] + ": " + name
			if lookups[key] == "" {
				t.Errorf("%s looks for %s at run time: hand it over where the value is made, or add the reason to lookups", file, name)
			}
			used[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(lookups)) {
		if !used[key] {
			t.Errorf("the look-up %q is not there any more", key)
		}
	}
}

// declared notes the interfaces of a file, and the types with exported methods.
func declared(f *ast.File, pkg string, interfaces, methods map[string]bool) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && d.Name.IsExported() {
				typ := d.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				if name, ok := typ.(*ast.Ident); ok {
					methods[pkg+"."+name.Name] = true
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					if _, ok := s.Type.(*ast.InterfaceType); ok {
						interfaces[pkg+"."+s.Name.Name] = true
					}
				}
			}
		}
	}
}

// asserted returns the types of all assertions and cases of type switches.
func asserted(f *ast.File) (types []ast.Expr) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				types = append(types, n.Type)
			}
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				types = append(types, c.(*ast.CaseClause).List...)
			}
		}
		return true
	})
	return types
}

// typeName returns a type as it is written, and with the path of its package; full is
// empty for a type that is not ours.
func typeName(f *ast.File, pkg string, typ ast.Expr) (name, full string) {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		name, full = typeName(f, pkg, typ.X)
		return "*" + name, full
	case *ast.Ident:
		return typ.Name, pkg + "." + typ.Name
	case *ast.SelectorExpr:
		from := typ.X.(*ast.Ident).Name
		return from + "." + typ.Sel.Name, imported(f, from) + "." + typ.Sel.Name
	case *ast.InterfaceType:
		return "interface", ""
	}
	return "", ""
}

// imported returns the path below the module of a package that a file names.
func imported(f *ast.File, name string) string {
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		last := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			last = spec.Name.Name
		}
		if rest, ok := strings.CutPrefix(path, module+"/"); ok && last == name {
			return rest
		}
	}
	return ""
}
