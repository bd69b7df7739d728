package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// commands lists the verbs.
func (a *app) commands() []*cobra.Command {
	verbs := []*cobra.Command{
		a.initCommand(),
		a.statusCommand(),
		a.demoCommand(),
		a.runCommand(),
		a.lsCommand(),
		a.logCommand(),
		a.showCommand(),
		a.diffCommand(),
		a.blameCommand(),
		a.searchCommand(),
		a.tailCommand(),
		a.followCommand(),
		a.askCommand(),
		a.snapshotCommand(),
		a.checkpointCommand(),
		a.rewindCommand(),
		a.undoCommand(),
		a.redoCommand(),
		a.opCommand(),
		a.pinCommand(),
		a.unpinCommand(),
		a.bisectCommand(),
		a.tryCommand(),
		a.adoptCommand(),
		a.forkCommand(),
		a.moveCommand(),
		a.importCommand(),
		a.resumeCommand(),
		a.connectCommand(),
		a.disconnectCommand(),
		a.hookCommand(),
		a.exportCommand(),
		a.proveCommand(),
		a.verifyCommand(),
		a.pushCommand(),
		a.pullCommand(),
		a.flushCommand(),
		a.duCommand(),
		a.gcCommand(),
		a.rmCommand(),
		a.renameCommand(),
		a.purgeCommand(),
		a.compactCommand(),
		earlier("settle", a.compactCommand()),
		a.archiveCommand(),
		earlier("seal", a.archiveCommand()),
		a.unarchiveCommand(),
		earlier("unseal", a.unarchiveCommand()),
		a.fsckCommand(),
		a.doctorCommand(),
		a.configCommand(),
		a.migrateCommand(),
		a.serveCommand(),
		a.mcpCommand(),
		a.tokensCommand(),
		a.auditCommand(),
		a.fleetCommand(),
		a.stateCommand(),
		a.blobCommand(),
		a.keysCommand(),
		a.completionCommand(),
		a.versionCommand(),
	}
	for _, verb := range verbs {
		a.prepare(verb)
	}
	return verbs
}

// earlier returns a verb under its former name, for scripts. Help and
// completion do not show it.
func earlier(name string, cmd *cobra.Command) *cobra.Command {
	cmd.Use = name + strings.TrimPrefix(cmd.Use, cmd.Name())
	cmd.Hidden = true
	return cmd
}

// prepare sets up a verb and its subverbs: settings are read before it runs, and
// errors of services get their exit codes.
func (a *app) prepare(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if cmd.Annotations[withoutSettings] == "" && cmd.Name() != "version" {
				if err := a.useSettings(); err != nil {
					return err
				}
			}
			return a.explain(run(cmd, args))
		}
	}
	if check := cmd.Args; check != nil {
		// Mutually exclusive flags are usage errors, like wrong arguments.
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if pair := excludedFlags(cmd); pair != "" {
				return errors.New(pair)
			}
			if err := cmd.ValidateFlagGroups(); err != nil {
				return err
			}
			return check(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		a.prepare(sub)
	}
}

// withoutSettings marks verbs that work even if the settings cannot be read.
const withoutSettings = "stet:without-settings"
