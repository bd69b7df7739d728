package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/checkpoint"
)

// completeRefs offers checkpoints and pins for the first n arguments.
func (a *app) completeRefs(n int) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveDefault // paths
		}
		return a.refNames(cmd), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func (a *app) refNames(cmd *cobra.Command) []string {
	if a.useSettings() != nil {
		return nil
	}
	a.json = true // never ask for a passphrase while completing
	ctx := cmd.Context()
	var names []string
	err := a.withPlace(ctx, false, func(p *place) error {
		for rec, err := range p.space.List(ctx, &checkpoint.ListOptions{Limit: 50}) {
			if err != nil {
				return err
			}
			names = append(names, fmt.Sprintf("%s\t%s %s", rec.Name(), when(rec.Time, now()), describe(rec)))
		}
		for pin, err := range p.service.Pins(ctx) {
			if err != nil {
				return err
			}
			names = append(names, "pin:"+pin.Name)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return names
}

// completePins offers the names of pins.
func (a *app) completePins(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || a.useSettings() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.json = true
	var names []string
	err := a.withPlace(cmd.Context(), false, func(p *place) error {
		for pin, err := range p.service.Pins(cmd.Context()) {
			if err != nil {
				return err
			}
			names = append(names, pin.Name)
		}
		return nil
	})
	if err != nil {
		names = nil
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
