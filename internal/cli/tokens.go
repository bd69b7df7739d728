package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/sqlite"
)

func (a *app) tokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tokens",
		Short:   "Create, list and revoke the tokens of a server's tenants",
		GroupID: groupServe,
		Long: `Callers of a server ('stet serve --mode server') need a token. A token names a tenant
and a scope. It gives access to this tenant's store only; the scope read allows reads,
write also allows changes, and admin also allows maintenance. A token is shown once, when
it is created; only its hash is kept. Changes take effect at once, even for a running
server. If the store is in a database, the tokens are in it, too, for all servers; each of
them sees a change within two seconds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tokensCreate(), a.tokensList(), a.tokensRevoke())
	return cmd
}

// withTokens runs fn with the tokens and the audit log of the store.
func (a *app) withTokens(ctx context.Context, fn func(*access.Tokens, *access.Audit) error) error {
	dir, err := a.serveDir()
	if err != nil {
		return err
	}
	all, err := a.settings()
	if err != nil {
		return err
	}
	path := auditFile(all, dir)
	log := openAudit(all, path)
	if !fleet.IsAddress(a.storePlace()) {
		return fn(access.OpenTokens(filepath.Join(dir, access.TokensName)), log)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := a.openFleet(ctx, stet.Options{})
	if err != nil {
		return err
	}
	return errors.Join(fn(f.Tokens(), log), f.Close())
}

func openAudit(all settings, path string) *access.Audit {
	return access.OpenAudit(path, &access.AuditOptions{MaxFile: all.size("serve.audit_max"), Files: int(all.number("serve.audit_files"))})
}

func auditFile(all settings, dir string) string {
	if path := all.text("serve.audit"); path != "" {
		return path
	}
	return filepath.Join(dir, access.AuditName)
}

func (a *app) tokensCreate() *cobra.Command {
	var scope, name, expires string
	cmd := &cobra.Command{
		Use:     "create TENANT",
		Short:   "Create a token and print it once",
		Example: "  stet tokens create shop --scope write --name 'build machine' --expires 90d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			grant := access.Grant{Tenant: args[0], Name: name}
			var err error
			if grant.Scope, err = access.ParseScope(scope); err != nil {
				return usage(fmt.Errorf("--scope: %w", err))
			}
			age, err := parseAge(expires)
			if err != nil {
				return usage(fmt.Errorf("--expires: %w", err))
			}
			if expires != "" {
				if age <= 0 {
					return usage(fmt.Errorf("--expires %s: a token must live longer than that; leave the flag out for one that never expires", expires))
				}
				grant.Expires = time.Now().Add(age)
			}
			return a.createToken(cmd.Context(), grant)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&scope, "scope", "write", "what the token allows: read, write or admin")
	flags.StringVar(&name, "name", "", "what the token is for")
	flags.StringVar(&expires, "expires", "", "lifetime, such as 90d or 36h (default: no limit)")
	return cmd
}

func (a *app) createToken(ctx context.Context, grant access.Grant) error {
	if err := access.CheckTenant(grant.Tenant); err != nil {
		return usage(err)
	}
	if err := a.ensureStore(ctx); err != nil {
		return err
	}
	var token string
	var info access.Info
	err := a.withTokens(ctx, func(tokens *access.Tokens, log *access.Audit) error {
		target := fmt.Sprintf("tenant %s, scope %s", grant.Tenant, grant.Scope)
		return audited(log, "tokens create", &target, func() (err error) {
			token, info, err = tokens.Create(grant)
			target += ", token " + info.ID
			return err
		})
	})
	if err != nil {
		return err
	}
	value := tokenJSON(info)
	value["token"] = token
	if err := a.print(value, token+"\n"); err != nil {
		return err
	}
	a.say("token %s of tenant %s, scope %s; it is not shown again", info.ID, info.Tenant, info.Scope)
	return nil
}

// ensureStore creates the store, locked or not, before other files are put into its
// directory: a store is not created in a directory with other content.
func (a *app) ensureStore(ctx context.Context) error {
	if fleet.IsAddress(a.storePlace()) {
		return nil // created when it is opened
	}
	dir, err := a.storeDir()
	if err != nil {
		return err
	}
	engine, err := sqlite.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	return engine.Close()
}

// audited runs a function with a line in the log before and after it. The function
// may refine the target.
func audited(log *access.Audit, action string, target *string, do func() error) error {
	begun, err := log.Begin(access.Principal{Token: "cli:" + author()}, "", action, *target)
	if err != nil {
		return err
	}
	err = do()
	result := "ok"
	if err != nil {
		_, result = Code(err)
	}
	begun.Target = *target
	return errors.Join(err, log.End(begun, result))
}

func tokenJSON(info access.Info) map[string]any {
	value := map[string]any{
		"schema": "stet.token.v1", "id": info.ID, "tenant": info.Tenant, "scope": info.Scope.String(), "name": info.Name,
		"created": info.Created.Format(time.RFC3339),
	}
	if info.Expires != nil {
		value["expires"] = info.Expires.Format(time.RFC3339)
		value["expired"] = info.Expired(time.Now())
	}
	return value
}

func (a *app) tokensList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens without their secrets",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var infos []access.Info
			err := a.withTokens(cmd.Context(), func(tokens *access.Tokens, _ *access.Audit) (err error) {
				infos, err = tokens.List()
				return err
			})
			if err != nil {
				return err
			}
			for _, info := range infos {
				ends := "never expires"
				switch {
				case info.Expired(time.Now()):
					ends = "expired " + info.Expires.Local().Format("2 Jan 2006")
				case info.Expires != nil:
					ends = "until " + info.Expires.Local().Format("2 Jan 2006")
				}
				text := fmt.Sprintf("%s  %-16s %-5s  %s  %s\n", info.ID, info.Tenant, info.Scope, ends, info.Name)
				if err := a.print(tokenJSON(info), text); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) tokensRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token immediately",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var info access.Info
			err := a.withTokens(cmd.Context(), func(tokens *access.Tokens, log *access.Audit) error {
				target := "token " + shownID(args[0])
				return audited(log, "tokens revoke", &target, func() (err error) {
					if info, err = tokens.Revoke(args[0]); errors.Is(err, access.ErrNotFound) {
						err = coded(ExitNotFound, "%w", err)
					}
					return err
				})
			})
			if err != nil {
				return err
			}
			return a.print(tokenJSON(info), fmt.Sprintf("revoked %s\n", info.ID))
		},
	}
}

// shownID keeps a whole token, given in place of its id, out of the log.
func shownID(id string) string {
	if len(id) > 16 {
		return id[:16] + "…"
	}
	return id
}
