package workspace

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestCheckPath(t *testing.T) {
	for _, path := range []string{
		"a", "a/b/c.txt", ".gitignore", ".gitattributes", ".github/x", "git", "gita~1", "a.git", ".git2", "..a", "a..", "...",
		"con.txt", "aux.c", "console", "com", "com0", "lpt10", "nul-x", "bad\xff\xfename", "tab\tname", "sp ace", "trailing.", "trailing ",
		".stet", ".stetignore", "日本/語", "a:b", `back\slash`, "-rf", "~",
	} {
		if err := CheckPath(path); err != nil {
			t.Errorf("CheckPath(%q) = %v, want nil", path, err)
		}
	}
	for _, path := range []string{
		"", "/", "/etc/x", "../x", "a/../b", "a/..", "..", ".", "a/./b", "a//b", "a/", "a\x00b",
		".git", ".git/hooks/x", ".GIT/config", "sub/.Git", ".gIt/x", "a/.git",
		".g\u200cit/config", "\u200d.git", ".git\ufeff", "a/.G\u202aIT/x", ".gi\u206ft",
		".git.", ".git ", ".git. . /x", ".git::$INDEX_ALLOCATION/x", ".git:stream", `a\.git\config`, `.git\config`, "git~1", "GIT~1/config", "git~12", "GIT~1.",
		StagePrefix + "x", ".STET-STAGE-x/y", ".stet\u200c-stage-1",
		strings.Repeat("n", 256), strings.Repeat("n/", 2100) + "n",
	} {
		if err := CheckPath(path); !errors.Is(err, ErrBadPath) {
			t.Errorf("CheckPath(%q) = %v, want ErrBadPath", path, err)
		}
	}
}

// Names that Windows gives to devices, or reads as others, are ordinary elsewhere. A tree
// may hold them everywhere.
func TestNamesOfWindows(t *testing.T) {
	for _, path := range []string{
		"CON", "con", "a/NUL", "nul.", "aux ", "COM1", "lpt9", "PRN/x", "CONIN$", "nul:", "aux.c", "a/Com3.tar.gz", "lpt\u00b2",
		"trailing.", "trailing /x", "a:b", `back\slash`, "what?", "tab\there", `"quoted"`, "a|b", "<x>", "*",
	} {
		if err := CheckPath(path); err != nil {
			t.Errorf("CheckPath(%q) = %v", path, err)
		}
		if err := CheckHere(path); (err == nil) != (runtime.GOOS != "windows") || err != nil && !errors.Is(err, ErrBadPath) {
			t.Errorf("CheckHere(%q) = %v", path, err)
		}
		bad := false
		for name := range strings.SplitSeq(path, "/") {
			bad = bad || WindowsName(name) != ""
		}
		if !bad {
			t.Errorf("WindowsName has nothing against %q", path)
		}
	}
	for _, name := range []string{"console", "com", "com0", "lpt10", "nul-x", "con-x.txt", ".hidden", "a b", "日本", "-rf", "~", "auxiliary.c"} {
		if why := WindowsName(name); why != "" {
			t.Errorf("WindowsName(%q) = %q", name, why)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	f.Add("a/.git/x")
	f.Add("..\\x")
	f.Fuzz(func(t *testing.T, path string) {
		if CheckPath(path) != nil {
			return
		}
		for name := range strings.SplitSeq(path, "/") {
			if name == "" || name == "." || name == ".." || skipName(name) || strings.ContainsRune(name, 0) {
				t.Errorf("%q passed", path)
			}
		}
	})
}
