package checkpoint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkPinName rejects names that would not be one word of a list, or that read as another
// reference. Pins of earlier releases may have such names; they can be used and removed.
func checkPinName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name of a pin is empty", ErrBadRef)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, breaksLine):
		return fmt.Errorf("%w: the name of a pin, %q, has a line break or another control character; choose a name without", ErrBadRef, name)
	case readsAsReference(name):
		return fmt.Errorf("%w: the name of a pin, %q, would read as another reference; choose another name", ErrBadRef, name)
	}
	return nil
}

func breaksLine(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// readsAsReference reports whether a name has one of the forms that Resolve lists, other
// than an id: most words could begin one.
func readsAsReference(name string) bool {
	if strings.HasPrefix(name, "@") {
		return true
	}
	lower := strings.ToLower(name)
	for _, prefix := range []string{"turn:", "before:", "after:", "pin:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	for _, kind := range []string{"c", "i"} {
		if number, ok := strings.CutPrefix(lower, kind); ok {
			_, err := strconv.ParseUint(number, 10, 64)
			return err == nil
		}
	}
	return false
}
