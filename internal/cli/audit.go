package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/access"
)

func (a *app) auditCommand() *cobra.Command {
	var tenant string
	var verify bool
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Show destructive calls, refused calls and token changes",
		GroupID: groupServe,
		Long: `Show the audit log of a server: every call that removes or replaces something
(deletions, rewinds, collections, raw row writes), refused calls, the first use of a
token from an address, and every change of tokens. A call has two lines: 'begin',
written before it runs, and 'end' with its result; 'keys' lines between them name the
rows. --json prints the lines of the log unchanged. If several servers share a
database, each has its own log.

Each line holds the hash of the line before it. --verify reads the whole log and fails
with exit code 6 if a line was changed or removed.`,
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
			log := openAudit(all, auditFile(all, dir))
			if verify {
				return a.verifyAudit(log)
			}
			return log.Records(func(r access.Record) error {
				if tenant != "" && r.Tenant != tenant {
					return nil
				}
				return a.print(r, auditText(r))
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "show only this tenant")
	cmd.Flags().BoolVar(&verify, "verify", false, "check that no line was changed or removed")
	return cmd
}

func auditText(r access.Record) string {
	text := fmt.Sprintf("%s  %-5s %-10s %s  %s  %s  %s", r.Time.Local().Format("2006-01-02 15:04:05"), r.Phase, r.Result, r.Token, r.Tenant, r.Action, r.Target)
	if r.Address != "" {
		text += "  from " + r.Address
	}
	if len(r.Keys) > 0 {
		text += "  " + strings.Join(r.Keys, " ")
	}
	return text + "\n"
}

func (a *app) verifyAudit(log *access.Audit) error {
	lines, err := log.Verify()
	if err != nil {
		return err
	}
	value := map[string]any{"schema": "stet.audit.verify.v1", "lines": lines, "ok": true}
	return a.print(value, fmt.Sprintf("ok  %s, none changed or removed\n", plural(int64(lines), "line")))
}
