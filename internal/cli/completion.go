package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
)

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "completion bash|zsh|fish|powershell",
		Short:   "Print a completion script for your shell",
		GroupID: groupPlumbing,
		Long: `Print a script for your shell. It completes verbs, flags, conversations,
checkpoints and pins.

  bash:  source <(stet completion bash)      (needs the package bash-completion)
  zsh:   stet completion zsh > "${fpath[1]}/_stet"
  fish:  stet completion fish > ~/.config/fish/completions/stet.fish`,
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:             []string{"bash", "zsh", "fish", "powershell"},
		DisableFlagsInUseLine: true,
		Annotations:           map[string]string{withoutSettings: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			}
			return root.GenPowerShellCompletionWithDesc(a.out)
		},
	}
}

// completeConversations offers the last changed conversations. On an error it offers
// nothing.
func (a *app) completeConversations(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.conversationNames(cmd, prefix), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeConversationFlag is completeConversations for the value of -c, wherever it
// appears.
func (a *app) completeConversationFlag(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return a.completeConversations(cmd, nil, prefix)
}

func (a *app) conversationNames(cmd *cobra.Command, prefix string) []string {
	if a.useSettings() != nil {
		return nil
	}
	a.json = true           // never ask for a passphrase while completing
	a.copying.silent = true // nor send anything
	var names []string
	err := a.withStore(cmd.Context(), false, func(db *stet.DB) error {
		found, err := db.Conversations().IDs(cmd.Context(), prefix, 100)
		if err != nil {
			return err
		}
		for _, id := range found {
			info, err := db.Conversations().Get(cmd.Context(), id)
			if err != nil {
				return err
			}
			names = append(names, fmt.Sprintf("%s\t%s", id, clip(info.Title, 50)))
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return names
}
