package cli

import (
	"fmt"
	"strings"

	"github.com/stet-dev/stet/workspace"
)

// notKeptText says what checkpoints do not keep of files, or "".
func notKeptText(n *workspace.NotKept) string {
	var parts []string
	for _, kind := range []struct {
		what workspace.Lack
		text string
	}{
		{workspace.LackLinks, "hard links"},
		{workspace.LackAttributes, "extended attributes"},
		{workspace.LackOwner, "the owner"},
	} {
		count, examples := n.Of(kind.what)
		if count == 0 {
			continue
		}
		names := make([]string, len(examples))
		for i, path := range examples {
			names[i] = printable(path)
		}
		text := strings.Join(names, ", ")
		if more := count - int64(len(names)); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, kind.text+" of "+text)
	}
	return strings.Join(parts, "; ")
}

// orNil leaves out of JSON what says nothing.
func orNil(n *workspace.NotKept) *workspace.NotKept {
	if n.None() {
		return nil
	}
	return n
}
