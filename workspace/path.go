package workspace

import (
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"
)

// StagePrefix begins the names under which a restore stages new contents inside
// a workspace. Scans skip such names and no tree may hold them.
const StagePrefix = ".stet-stage-"

// CheckName reports, with an error that wraps ErrBadPath, whether a name is
// structurally wrong as one component of a path: empty, "." or "..", longer than
// MaxName, or with a slash or NUL in it. Nodes are held to it by their decoder.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty name", ErrBadPath)
	case name == "." || name == "..":
		return fmt.Errorf("%w: name %q", ErrBadPath, name)
	case len(name) > MaxName:
		return fmt.Errorf("%w: name of %d bytes, at most %d", ErrBadPath, len(name), MaxName)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%w: %q holds a NUL", ErrBadPath, name)
	case strings.IndexByte(name, '/') >= 0:
		return fmt.Errorf("%w: %q holds a slash", ErrBadPath, name)
	}
	return nil
}

// CheckPath reports whether a slash-separated path from a manifest may be read
// or written inside a workspace, with an error that wraps ErrBadPath if not. It
// refuses what could lead outside (absolute, "..", empty components, NUL), what
// belongs to git or to a running restore (.git and StagePrefix in any case or
// disguise that some file system resolves to them), what is too long, and on Windows
// names of devices.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("%w: path of %d bytes, at most %d", ErrBadPath, len(path), MaxPath)
	}
	if path == "" {
		return fmt.Errorf("%w: empty path", ErrBadPath)
	}
	if path[0] == '/' {
		return fmt.Errorf("%w: %q is absolute", ErrBadPath, path)
	}
	for rest, more := path, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if err := CheckName(name); err != nil {
			return fmt.Errorf("%w in %q", err, path)
		}
		if why := forbiddenName(name); why != "" {
			return fmt.Errorf("%w: %q holds %s", ErrBadPath, path, why)
		}
	}
	return nil
}

// forbiddenName tells what is wrong with a component that is structurally fine,
// or returns "". It is on the path of every scanned name, so the names that
// cannot be meant are let through by their first byte.
func forbiddenName(name string) string {
	if plainName(name) {
		return ""
	}
	folded := foldName(name)
	// A backslash separates components, and a colon names a stream of a file,
	// where Windows reads the path.
	for part := range strings.SplitSeq(folded, `\`) {
		base, _, _ := strings.Cut(part, ":")
		base = strings.TrimRight(base, ". ")
		switch {
		case base == ".git" || isShortGit(base):
			return "the name of a git directory"
		case strings.HasPrefix(part, StagePrefix):
			return "the name of a staged file"
		case runtime.GOOS == "windows" && isDevice(base):
			return "the name of a device"
		}
	}
	if runtime.GOOS == "windows" && (strings.ContainsAny(name, `\:`) || isDevice(stem(folded))) {
		return "what Windows reads in another way"
	}
	return ""
}

// plainName reports whether a name is ASCII without the bytes that disguises
// need, and begins with none of the letters that forbidden names begin with.
func plainName(name string) bool {
	switch name[0] | 0x20 {
	case '.', 'g', 'c', 'p', 'a', 'n', 'l':
		return false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 0x80 || c == '\\' || c == ':' {
			return false
		}
	}
	return true
}

// PathBytes returns a path for a field beside its text, or nil where the text says it
// all: names are bytes, and where they are not UTF-8, text shows several alike.
func PathBytes(path string) []byte {
	if utf8.ValidString(path) {
		return nil
	}
	return []byte(path)
}

// foldName drops the code points that HFS+ ignores in names and lowers the case.
func foldName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name))
}

// isShortGit reports whether a name is one that NTFS makes for .git: git~1.
func isShortGit(name string) bool {
	digits, ok := strings.CutPrefix(name, "git~")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isDevice reports whether Windows gives a name to a device. With an extension
// (aux.c) such names are ordinary elsewhere and found in real trees; they are
// refused on Windows only.
func isDevice(name string) bool {
	switch name {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	if len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")) {
		return name[3] >= '1' && name[3] <= '9'
	}
	return false
}

func stem(name string) string {
	base, _, _ := strings.Cut(name, ".")
	return strings.TrimRight(base, " ")
}

// skipName reports whether a scan passes over a name in silence: git's own data
// and staged files, which are nobody's content.
func skipName(name string) bool {
	if name[0] != '.' {
		return false
	}
	return strings.EqualFold(name, ".git") ||
		len(name) >= len(StagePrefix) && strings.EqualFold(name[:len(StagePrefix)], StagePrefix)
}

// join appends a component to a relative path.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
