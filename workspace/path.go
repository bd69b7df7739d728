package workspace

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// StagePrefix is the prefix of files that a restore stages inside a workspace. Scans
// skip such names, and no tree may hold them.
const StagePrefix = ".stet-stage-"

// CheckName returns an error that wraps ErrBadPath if a name is invalid as a path
// component: empty, "." or "..", longer than MaxName, or with a slash or NUL. The
// node decoder enforces it.
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

// CheckPath returns an error that wraps ErrBadPath if a slash-separated path from a
// manifest must not be read or written inside a workspace. It rejects paths that could
// lead outside (absolute, "..", empty components, NUL), paths of git or of a running
// restore (.git and StagePrefix in any case or disguise that some file system resolves to
// them), and paths that are too long. The result is the same on every system; CheckHere
// rejects paths that this system cannot have.
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

// forbiddenName returns why a valid component is forbidden, or "". It runs for every
// scanned name, so it accepts most names by their first byte.
func forbiddenName(name string) string {
	if plainName(name) {
		return ""
	}
	folded := foldName(name)
	// On Windows a backslash separates components, and a colon names a stream of a
	// file.
	for part := range strings.SplitSeq(folded, `\`) {
		base, _, _ := strings.Cut(part, ":")
		base = strings.TrimRight(base, ". ")
		switch {
		case base == ".git" || isShortGit(base):
			return "the name of a git directory"
		case strings.HasPrefix(part, StagePrefix):
			return "the name of a staged file"
		}
	}
	return ""
}

// plainName reports whether a name is ASCII without the bytes needed for a disguise,
// and does not begin like a forbidden name.
func plainName(name string) bool {
	switch name[0] | 0x20 {
	case '.', 'g':
		return false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 0x80 || c == '\\' || c == ':' {
			return false
		}
	}
	return true
}

// PathBytes returns the bytes of a path that is not valid UTF-8, else nil: the text
// of such paths is ambiguous, so a separate field holds the bytes.
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

// isShortGit reports whether a name is a short name of .git on NTFS: git~1.
func isShortGit(name string) bool {
	digits, ok := strings.CutPrefix(name, "git~")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isGit reports whether a name is that of git's own data.
func isGit(name string) bool { return strings.EqualFold(name, gitName) }

// skipName reports whether a scan never captures a name: git's own data and staged
// files.
func skipName(name string) bool {
	if name[0] != '.' {
		return false
	}
	return isGit(name) ||
		len(name) >= len(StagePrefix) && strings.EqualFold(name[:len(StagePrefix)], StagePrefix)
}

// join appends a component to a relative path.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
