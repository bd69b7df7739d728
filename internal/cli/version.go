package cli

import (
	"cmp"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/internal/cli/shortcut"
)

// programInfo describes the program.
type programInfo struct {
	Schema  string `json:"schema"`
	Version string `json:"version"`
	// Commit is the revision of the sources, and Date when it was made. They are "" if the
	// build did not see a repository.
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date,omitempty"`
	// Changed means that the sources were not those of the commit.
	Changed bool `json:"changed,omitempty"`
}

func thisProgram() programInfo {
	b := programInfo{Schema: "stet.version.v1", Version: "(devel)"}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Changed = s.Value == "true"
			}
		}
	}
	b.Version = cmp.Or(shortcut.Release, b.Version)
	b.Commit = cmp.Or(shortcut.Commit, b.Commit)
	b.Date = cmp.Or(shortcut.Date, b.Date)
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit and its date",
		GroupID: groupPlumbing,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	b := thisProgram()
	return a.print(b, shortcut.VersionLine(b.Version, b.Commit, b.Date, b.Changed)+"\n")
}

// version returns the version alone.
func version() string { return thisProgram().Version }
