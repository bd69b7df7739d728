package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/access"
)

func (a *app) auditCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Show what callers of the server took away, and changes of tokens",
		GroupID: groupServe,
		Long: `Show the audit log of a server: every call that took something away (deletions,
rewinds, collections and the like) and every change of tokens, with the id of the
token that made it. A call has two lines: 'begin' before it was done, 'end' with its
result. --json prints the lines of the log as they are. Where several servers share a
database, each has a log of its own.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.serveDir()
			if err != nil {
				return err
			}
			all, err := a.settings()
			if err != nil {
				return err
			}
			return access.OpenAudit(auditFile(all, dir)).Records(func(r access.Record) error {
				if tenant != "" && r.Tenant != tenant {
					return nil
				}
				text := fmt.Sprintf("%s  %-5s %-10s %s  %s  %s  %s\n", r.Time.Local().Format("2006-01-02 15:04:05"), r.Phase, r.Result, r.Token, r.Tenant, r.Action, r.Target)
				return a.print(r, text)
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only what concerns this tenant")
	return cmd
}
