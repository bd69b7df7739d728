package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/internal/osfile"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Read, write and explain settings",
		GroupID: groupHouse,
		Long: `Settings apply to all commands. They are stored in
$XDG_CONFIG_HOME/stet/config.toml, or in the file that --config or STET_CONFIG
names; an environment variable STET_… overrides the file, a flag overrides
both. 'stet config explain' lists all of them.`,
		Example: "  stet config set gc.max_age 90d\n  stet config get gc.max_age\n  stet config explain",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configGet(), a.configSet(), a.configUnset(), a.configExplain())
	for _, sub := range cmd.Commands() {
		sub.Annotations = map[string]string{withoutSettings: "yes"}
		sub.ValidArgsFunction = completeSettings
	}
	return cmd
}

func completeSettings(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var keys []string
	for _, s := range knownSettings {
		keys = append(keys, s.key+"\t"+s.about)
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) configGet() *cobra.Command {
	return &cobra.Command{
		Use:     "get KEY",
		Short:   "Print the value of a setting",
		Example: "  stet config get capture.max_file",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := settingOf(args[0])
			if err != nil {
				return usage(err)
			}
			all, err := a.settings()
			if err != nil {
				return err
			}
			return a.print(settingJSON(s, all), shown(all.text(s.key))+"\n")
		},
	}
}

func settingJSON(s setting, all settings) map[string]any {
	return map[string]any{
		"schema": "stet.setting.v1", "key": s.key, "value": shown(all[s.key].value), "source": all[s.key].source,
		"default": s.value, "env": s.env(), "about": s.about,
	}
}

func (a *app) configSet() *cobra.Command {
	return &cobra.Command{
		Use:     "set KEY VALUE",
		Short:   "Write a setting to the file",
		Long:    "Write a setting to $XDG_CONFIG_HOME/stet/config.toml, or to the file that --config\nnames. The rest of the file, including comments, is unchanged.",
		Example: "  stet config set gc.max_bytes 2GiB",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := settingOf(args[0])
			if err != nil {
				return usage(err)
			}
			if err := s.check(args[1]); err != nil {
				return usage(fmt.Errorf("%s: %w", s.key, err))
			}
			return a.changeSettings(func(text string) string {
				return writeSetting(writeSetting(text, s.earlier(), ""), s.key, s.literal(args[1]))
			})
		},
	}
}

func (a *app) configUnset() *cobra.Command {
	return &cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a setting from the file, so that its default applies",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := settingOf(args[0])
			if err != nil {
				return usage(err)
			}
			return a.changeSettings(func(text string) string {
				return writeSetting(writeSetting(text, s.earlier(), ""), s.key, "")
			})
		},
	}
}

func (a *app) configExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain settings, their values and their sources",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := a.settings()
			if err != nil {
				return err
			}
			wanted := knownSettings
			if len(args) == 1 {
				s, err := settingOf(args[0])
				if err != nil {
					return usage(err)
				}
				wanted = []setting{s}
			}
			return a.explainSettings(wanted, all)
		},
	}
}

// explainSettings prints settings, their values and their sources.
func (a *app) explainSettings(wanted []setting, all settings) error {
	p := a.paint()
	for _, s := range wanted {
		value := shown(all[s.key].value)
		if value == "" {
			value = "(not set)"
		}
		text := fmt.Sprintf("%s = %s   %s\n    %s\n", p.bold(s.key), value, p.dim("("+all[s.key].source+")"), s.about)
		if err := a.print(settingJSON(s, all), text); err != nil {
			return err
		}
	}
	return nil
}

// changeSettings rewrites the file, or leaves it alone if the result could not be
// read back.
func (a *app) changeSettings(change func(string) string) error {
	path := a.settingsFile()
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	text := change(string(old))
	if _, err := parseSettings(text); err != nil {
		return usage(fmt.Errorf("settings in %s: %w", path, err))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "config-*.toml")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already if it was renamed
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return osfile.Rename(f.Name(), path)
}

// writeSetting writes a value into the text of the file: in place of the old one,
// else into its table if the file has it, else at the top. An empty literal removes
// the line.
func writeSetting(text, key, literal string) string {
	lines := strings.SplitAfter(text, "\n")
	table, header := "", -1
	group, name := key, key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		group, name = key[:i], key[i+1:]
	}
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			table = strings.Trim(strings.SplitN(trimmed, "#", 2)[0], "[] \t") + "."
			if table == group+"." {
				header = i
			}
			continue
		}
		left, _, ok := strings.Cut(trimmed, "=")
		if !ok || table+strings.TrimSpace(left) != key {
			continue
		}
		if literal == "" {
			return strings.Join(append(lines[:i:i], lines[i+1:]...), "")
		}
		lines[i] = strings.TrimSpace(left) + " = " + literal + "\n"
		return strings.Join(lines, "")
	}
	switch {
	case literal == "":
		return text
	case header >= 0:
		if !strings.HasSuffix(lines[header], "\n") {
			lines[header] += "\n"
		}
		lines[header] += name + " = " + literal + "\n"
		return strings.Join(lines, "")
	}
	return key + " = " + literal + "\n" + text
}
