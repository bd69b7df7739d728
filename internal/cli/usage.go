package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-dev/stet/internal/spelling"
)

// wrapUsage gives wrong arguments the exit code of a usage error, and words.
func wrapUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage(fmt.Errorf("%w; see '%s --help'", explainArgs(cmd, args, err), cmd.CommandPath()))
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrapUsage(sub)
	}
}

// explainArgs names the argument that is missing or too many. The first line of the use
// says which there are.
func explainArgs(cmd *cobra.Command, args []string, err error) error {
	required, all := arguments(cmd.Use)
	switch {
	case cmd.HasAvailableSubCommands() && len(args) > 0:
		return fmt.Errorf("unknown command %q%s", args[0], meant(args[0], verbs(cmd)))
	case len(args) < required:
		return fmt.Errorf("%s is missing", strings.TrimRight(strings.ReplaceAll(all[len(args)], "|", " or "), "….")) // the first that is
	case len(args) > len(all) && !strings.ContainsAny(cmd.Use, "…."):
		return fmt.Errorf("unexpected argument %q", args[len(all)])
	case len(cmd.ValidArgs) > 0:
		return fmt.Errorf("%q is not one of %s%s", args[0], strings.Join(cmd.ValidArgs, ", "), meant(args[0], cmd.ValidArgs))
	}
	return err // the verb has its own words
}

// arguments returns the names of a verb's arguments, and how many of them are required.
func arguments(use string) (required int, all []string) {
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "[-") {
			break
		}
		if name := strings.Trim(word, "[]"); name == word && required == len(all) {
			required++
		}
		all = append(all, strings.Trim(word, "[]"))
	}
	return required, all
}

// verbs returns the names under which a command has others.
func verbs(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	return names
}

// badFlag explains an error in the flags. Parsing stops there, so a later --json must
// be looked up.
func (a *app) badFlag(cmd *cobra.Command, err error) error {
	end := slices.Index(a.args, "--")
	if end < 0 {
		end = len(a.args)
	}
	a.json = a.json || slices.Contains(a.args[:end], "--json")
	return usage(fmt.Errorf("%w; see '%s --help'", explainFlag(cmd, err), cmd.CommandPath()))
}

// explainFlag says which flag is meant, and what its value should be.
func explainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		return fmt.Errorf("%w%s", err, meant("--"+unknown.GetSpecifiedName(), names))
	}
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, kind := invalid.GetFlag(), invalid.GetFlag().Value.Type()
	if _, wrong := time.ParseDuration(invalid.GetValue()); kind == "duration" && wrong != nil {
		return fmt.Errorf("invalid duration %q for --%s; use 90s, 5m or 36h", invalid.GetValue(), flag.Name)
	}
	if !errors.As(err, &number) {
		return err
	}
	switch {
	case errors.Is(number, strconv.ErrRange):
		return fmt.Errorf("--%s %s is out of range", flag.Name, invalid.GetValue())
	case kind == "bool":
		return fmt.Errorf("invalid value %q for --%s; use true or false", invalid.GetValue(), flag.Name)
	case strings.HasPrefix(kind, "uint"):
		return fmt.Errorf("invalid value %q for --%s; use a number that is not negative", invalid.GetValue(), flag.Name)
	}
	return fmt.Errorf("invalid value %q for --%s; use a number", invalid.GetValue(), flag.Name)
}

// meant returns a question for the candidate that a mistyped word is closest to, or "".
func meant(word string, candidates []string) string {
	if best := spelling.Nearest(word, candidates); best != "" {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	return ""
}

// needsCommand checks the arguments of a verb that runs a command.
func needsCommand(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("CMD is missing")
	}
	return nil
}
