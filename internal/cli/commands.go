package cli

import "github.com/spf13/cobra"

// commands lists the verbs.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.blobCommand(),
		a.keysCommand(),
		a.versionCommand(),
	}
}
