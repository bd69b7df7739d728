package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// excluded is the annotation of a command that has its groups of flags of which only one
// may be given: names separated by spaces, groups by lines.
const excluded = "stet_excluded"

// exclude allows at most one of some flags. Cobra completes them accordingly.
func exclude(cmd *cobra.Command, names ...string) {
	cmd.MarkFlagsMutuallyExclusive(names...)
	if cmd.Annotations == nil {
		cmd.Annotations = make(map[string]string)
	}
	cmd.Annotations[excluded] += strings.Join(names, " ") + "\n"
}

// excludedFlags names given flags that exclude each other, or returns "". The text of
// cobra's error is about groups of flags.
func excludedFlags(cmd *cobra.Command) string {
	for group := range strings.Lines(cmd.Annotations[excluded]) {
		var given []string
		for _, name := range strings.Fields(group) {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return strings.Join(given, " and ") + " cannot be used together"
		}
	}
	return ""
}
