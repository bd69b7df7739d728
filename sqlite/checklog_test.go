package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/kv"
)

// killed returns a copy of a store that is open, which is what a kill would leave.
func killed(t *testing.T, db *DB) string {
	t.Helper()
	db.writer.turn.Lock()
	defer db.writer.turn.Unlock()
	return copyStore(t, db.dir)
}

func copyStore(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "store"), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	to = filepath.Join(to, "store")
	if err := ignoreMissing(os.Remove(filepath.Join(to, databaseName+"-shm"))); err != nil {
		t.Fatal(err)
	}
	return to
}

// commits sets so many rows, one commit each, to what they are not yet.
func commits(t *testing.T, db *DB, n int, value string) {
	t.Helper()
	for i := range n {
		batch := &kv.Batch{Set: []kv.Set{{Key: fmt.Sprintf("row/%d", i), Value: []byte(value)}}}
		if err := db.Rows().Commit(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// putLog puts the log of one store beside the database of another.
func putLog(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, databaseName+logSuffix))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, databaseName+logSuffix), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func closeNow(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// wrongLogs are stores whose log is not their own. None of them may be opened: a
// frame that does not belong to the database undoes commits, and fsck would find
// nothing amiss.
var wrongLogs = []struct {
	name string
	make func(t *testing.T) (dir string)
}{
	{"of another store beside a closed one", func(t *testing.T) string {
		db, other := openTest(t, nil), openTest(t, nil)
		commits(t, db, 3, "mine")
		commits(t, other, 3, "other")
		closeNow(t, db)
		putLog(t, killed(t, other), db.dir)
		return db.dir
	}},
	{"of another store beside one that was never written to", func(t *testing.T) string {
		db, other := openTest(t, nil), openTest(t, nil)
		commits(t, other, 3, "other")
		closeNow(t, db)
		putLog(t, killed(t, other), db.dir)
		return db.dir
	}},
	{"of another store in place of its own", func(t *testing.T) string {
		db, other := openTest(t, nil), openTest(t, nil)
		commits(t, db, 3, "mine")
		commits(t, other, 3, "other")
		dir := killed(t, db)
		putLog(t, killed(t, other), dir)
		return dir
	}},
	{"of the same process, from earlier", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "first")
		earlier := killed(t, db)
		commits(t, db, 3, "second")
		closeNow(t, db)
		putLog(t, earlier, db.dir)
		return db.dir
	}},
	{"of an earlier process", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "first")
		earlier := killed(t, db)
		closeNow(t, db)
		db = openAgain(t, db)
		commits(t, db, 3, "second")
		dir := killed(t, db)
		putLog(t, earlier, dir)
		return dir
	}},
	{"from before it was begun again", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "first")
		earlier := killed(t, db)
		moveLogNow(db, 0)
		commits(t, db, 3, "second")
		dir := killed(t, db)
		putLog(t, earlier, dir)
		return dir
	}},
	{"from before it was copied", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "first")
		earlier := killed(t, db)
		commits(t, db, 3, "second")
		moveLogNow(db, 0)
		dir := killed(t, db)
		putLog(t, earlier, dir)
		return dir
	}},
	{"newer than the database", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "first")
		closeNow(t, db)
		earlier := copyStore(t, db.dir)
		db = openAgain(t, db)
		commits(t, db, 3, "second")
		moveLogNow(db, 0)
		commits(t, db, 3, "third")
		putLog(t, killed(t, db), earlier)
		return earlier
	}},
	{"deleted", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 1, "mine")
		dir := killed(t, db)
		if err := os.Remove(filepath.Join(dir, databaseName+logSuffix)); err != nil {
			t.Fatal(err)
		}
		return dir
	}},
	{"deleted after it was begun again", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "first")
		moveLogNow(db, 0)
		commits(t, db, 3, "second")
		dir := killed(t, db)
		if err := os.Remove(filepath.Join(dir, databaseName+logSuffix)); err != nil {
			t.Fatal(err)
		}
		return dir
	}},
	{"emptied after it was copied", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "mine")
		moveLogNow(db, 0)
		dir := killed(t, db)
		if err := os.Truncate(filepath.Join(dir, databaseName+logSuffix), 0); err != nil {
			t.Fatal(err)
		}
		return dir
	}},
	{"damaged before what was copied", func(t *testing.T) string {
		db := openTest(t, nil)
		commits(t, db, 3, "mine")
		moveLogNow(db, 0)
		dir := killed(t, db)
		patchFile(t, filepath.Join(dir, databaseName+logSuffix), logHeaderSize+frameHeaderSize+7, []byte{0xff})
		return dir
	}},
}

func patchFile(t *testing.T, path string, off int64, with []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(with, off); err != nil {
		t.Fatal(err)
	}
}

func TestLogsThatAreNotTheDatabasesOwn(t *testing.T) {
	for _, test := range wrongLogs {
		t.Run(test.name, func(t *testing.T) {
			dir := test.make(t)
			before := snapshot(t, dir)
			db, err := Open(t.Context(), dir, nil)
			if err == nil {
				db.Close()
			}
			if !errors.Is(err, ErrWrongLog) || !errors.Is(err, ErrDamaged) {
				t.Fatalf("Open = %v, want ErrWrongLog", err)
			}
			after := snapshot(t, dir)
			if len(after) != len(before) {
				t.Errorf("the refusal left %d files of %d", len(after), len(before))
			}
			for path, content := range before {
				if after[path] != content {
					t.Errorf("the refusal changed %s", path)
				}
			}
			forgetAndUse(t, dir)
		})
	}
}

// forgetAndUse gives a log up: the store can be used again and stays usable.
func forgetAndUse(t *testing.T, dir string) {
	t.Helper()
	for _, opts := range []*Options{{ForgetLog: true}, nil, {ForgetLog: true}} {
		db, err := Open(t.Context(), dir, opts)
		if err != nil {
			t.Fatalf("Open with %+v = %v", opts, err)
		}
		commits(t, db, 2, "later")
		closeNow(t, db)
	}
}

// TestLogsThatAreReadOnlyLookedAt are refused by readers, too, who would see a mix.
func TestReadersRefuseAWrongLog(t *testing.T) {
	db, other := openTest(t, nil), openTest(t, nil)
	commits(t, db, 3, "mine")
	commits(t, other, 3, "other")
	closeNow(t, db)
	putLog(t, killed(t, other), db.dir)
	reader, err := Open(t.Context(), db.dir, &Options{ReadOnly: true})
	if err == nil {
		reader.Close()
	}
	if !errors.Is(err, ErrWrongLog) {
		t.Errorf("Open = %v, want ErrWrongLog", err)
	}
}

// TestLogsOfKilledStores have nothing wrong with them, whatever the process was
// about to do.
func TestLogsOfKilledStores(t *testing.T) {
	db := openTest(t, nil)
	look := func(when string) {
		t.Helper()
		dir := killed(t, db)
		again, err := Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		commits(t, again, 2, "again")
		closeNow(t, again)
	}
	look("new")
	commits(t, db, 2, "1")
	look("first log")
	moveLogNow(db, 0)
	look("copied")
	commits(t, db, 2, "2")
	look("second log")
	other := openAgain(t, db)
	commits(t, other, 2, "3")
	commits(t, db, 2, "4")
	look("two processes")
	moveLogNow(other, 0)
	commits(t, db, 2, "5")
	look("begun again by the other")
	closeNow(t, other)
	look("the other is gone")
	closeNow(t, db)
	db = openAgain(t, db)
	look("opened again")
	commits(t, db, 2, "6")
	look("third log")
}

// downgrade makes a store what an earlier release would have left.
func downgrade(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, databaseName)
	patchFile(t, path, markOffset, make([]byte, markSize))
	patchFile(t, path, 60, binary.BigEndian.AppendUint32(nil, 1))
}

// TestStoresOfFormatOne have no mark, with a log of a killed process or without, and
// get one.
func TestStoresOfFormatOne(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, db *DB) string
	}{
		{"closed", func(t *testing.T, db *DB) string { closeNow(t, db); return db.dir }},
		{"killed", killed},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := openTest(t, nil)
			closeNow(t, db)
			db = openAgain(t, db)
			commits(t, db, 3, "first")
			dir := test.make(t, db)
			downgrade(t, dir)
			old, err := Open(t.Context(), dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			row, err := old.Rows().Get(t.Context(), "row/2")
			if err != nil || string(row.Value) != "first" {
				t.Errorf("row = %q, %v", row.Value, err)
			}
			commits(t, old, 3, "second")
			earlier := killed(t, old)
			if again, err := Open(t.Context(), earlier, nil); err != nil {
				t.Errorf("killed after the upgrade: %v", err)
			} else {
				again.Close()
			}
			commits(t, old, 3, "third")
			closeNow(t, old)
			putLog(t, killedLog(t, earlier), dir)
			if again, err := Open(t.Context(), dir, nil); !errors.Is(err, ErrWrongLog) {
				again.Close()
				t.Errorf("Open with an earlier log = %v, want ErrWrongLog", err)
			}
		})
	}
}

// killedLog returns the directory of a store that has a log of its own again.
func killedLog(t *testing.T, dir string) string {
	t.Helper()
	db, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	commits(t, db, 3, "elsewhere")
	return killed(t, db)
}
