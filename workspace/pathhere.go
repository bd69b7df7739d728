package workspace

import (
	"fmt"
	"runtime"
	"strings"
)

// CheckHere returns an error that wraps ErrBadPath if this system cannot have a file at a
// path that CheckPath accepts. Windows reads some names as devices, as streams of another
// file or as another name, even if it lets a program create them.
func CheckHere(path string) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if why := WindowsName(name); why != "" {
			return fmt.Errorf("%w: %q holds %s", ErrBadPath, path, why)
		}
	}
	return nil
}

// WindowsName returns why Windows cannot have a name, or "". It works on every system.
func WindowsName(name string) string {
	for i := range len(name) {
		switch c := name[i]; {
		case c < 0x20, strings.IndexByte(`<>:"|?*\`, c) >= 0:
			return "a character that Windows does not allow"
		}
	}
	switch {
	case name != "" && strings.IndexByte(". ", name[len(name)-1]) >= 0:
		return "a name that ends in a dot or a space, which Windows leaves out"
	case isDevice(stem(strings.ToLower(name))):
		return "the name of a device on Windows"
	}
	return ""
}

// isDevice reports whether Windows takes a name for a device, regardless of its
// extension.
func isDevice(name string) bool {
	switch name {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	number, ok := strings.CutPrefix(name, "com")
	if !ok {
		number, ok = strings.CutPrefix(name, "lpt")
	}
	switch number {
	case "1", "2", "3", "4", "5", "6", "7", "8", "9", "\u00b9", "\u00b2", "\u00b3":
		return ok
	}
	return false
}

func stem(name string) string {
	base, _, _ := strings.Cut(name, ".")
	return strings.TrimRight(base, " ")
}
