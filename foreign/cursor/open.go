package cursor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Kind is the kind of a store.
type Kind int

// Kinds of stores.
const (
	// KindEditor is a state.vscdb.
	KindEditor Kind = iota + 1
	// KindAgent is the store.db of one agent of the command line or the SDK.
	KindAgent
	// KindSDK is a directory with an index.db and a store.db for each agent.
	KindSDK
	// KindLines is a directory with *.ndjson files.
	KindLines
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case KindEditor:
		return "editor"
	case KindAgent:
		return "agent"
	case KindSDK:
		return "sdk"
	case KindLines:
		return "jsonl"
	}
	return "unknown"
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	kind   Kind
	path   string
	opts   Options
	main   *database       // nil for KindLines
	tables map[string]bool // of main
	agents *agentStores    // KindSDK
	lines  *lineStore      // KindLines
}

// Open opens a store: a state.vscdb, a store.db, or the directory of an SDK store. It
// reads the header and the list of tables, and then holds no lock and no open file.
// For a file that is not a usable store the error is ErrNotDatabase, ErrEncrypted,
// ErrCorrupt, ErrTruncated, ErrUnsupported or ErrMissingTable.
func Open(ctx context.Context, path string, opts *Options) (*Store, error) {
	s := &Store{path: path}
	if opts != nil {
		s.opts = *opts
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if info.IsDir() {
		err = s.openDir(ctx)
	} else {
		err = s.openFile(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) openFile(ctx context.Context) error {
	if err := s.openMain(ctx, s.path); err != nil {
		return err
	}
	switch {
	case s.tables[diskTable.name], s.tables[itemTable.name]:
		s.kind = KindEditor
	case s.tables[blobTable.name] && s.tables[metaTable.name]:
		s.kind = KindAgent
	default:
		s.main.close()
		return fmt.Errorf("open %s: %w", s.path, ErrMissingTable)
	}
	return nil
}

func (s *Store) openMain(ctx context.Context, path string) error {
	db, err := openDatabase(ctx, path, s.opts)
	if err != nil {
		return err
	}
	if s.tables, err = db.tables(ctx); err != nil {
		db.close()
		return err
	}
	s.main = db
	return nil
}

// IsStore reports whether Open is worth trying: for any regular file, and for a
// directory with the files of a store.
func IsStore(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err == nil && info.Mode().IsRegular()
	}
	for _, name := range []string{"state.vscdb", "store.db", "index.db", "agents.ndjson", "checkpoints.ndjson"} {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return true
		}
	}
	return false
}

// openDir opens a directory: an SDK store or, for convenience, a directory with a
// single store file, or with a single SDK store in a subdirectory.
func (s *Store) openDir(ctx context.Context) error {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(s.path, name))
		return err == nil
	}
	switch {
	case has("index.db"):
		if err := s.openMain(ctx, filepath.Join(s.path, "index.db")); err != nil {
			return err
		}
		if !s.tables["agents"] {
			s.main.close()
			return fmt.Errorf("open %s: %w: index.db has no agents", s.path, ErrMissingTable)
		}
		s.kind = KindSDK
		s.agents = &agentStores{dir: filepath.Join(s.path, "agents"), opts: s.opts}
		return nil
	case has("agents.ndjson"), has("checkpoints.ndjson"):
		s.kind = KindLines
		s.lines = &lineStore{dir: s.path, max: s.opts.maxValue()}
		return nil
	}
	for _, name := range []string{"state.vscdb", "store.db"} {
		if has(name) {
			s.path = filepath.Join(s.path, name)
			return s.openFile(ctx)
		}
	}
	switch inside := Inside(s.path); len(inside) {
	case 0:
		return fmt.Errorf("open %s: %w", s.path, ErrMissingTable)
	case 1:
		s.path = inside[0]
		return s.openDir(ctx)
	default:
		return fmt.Errorf("open %s: %w: it holds several stores, name one of %q", s.path, ErrMissingTable, inside)
	}
}

// Kind returns the kind of the store.
func (s *Store) Kind() Kind { return s.kind }

// Path returns the path of the file or directory.
func (s *Store) Path() string { return s.path }

// Close closes the store.
func (s *Store) Close() error {
	var errs []error
	if s.main != nil {
		errs = append(errs, s.main.close())
	}
	if s.agents != nil {
		errs = append(errs, s.agents.close())
	}
	if s.lines != nil {
		errs = append(errs, s.lines.close())
	}
	return errors.Join(errs...)
}
