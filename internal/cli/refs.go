package cli

import (
	"context"
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
	err := a.withView(ctx, func(p *place) error {
		for rec, err := range p.space.List(ctx, &checkpoint.ListOptions{Limit: 50}) {
			if err != nil {
				return err
			}
			names = append(names, fmt.Sprintf("%s\t%s %s", rec.Name(), when(rec.Time, now()), describe(rec)))
		}
		pins, err := p.pinNames(ctx)
		for _, name := range pins {
			names = append(names, "pin:"+name)
		}
		return err
	})
	if err != nil {
		return nil
	}
	return names
}

// pinNames lists the pins of the workspace.
func (p *place) pinNames(ctx context.Context) ([]string, error) {
	var names []string
	for pin, err := range p.service.Pins(ctx) {
		if err != nil {
			return nil, err
		}
		if pin.Workspace == p.space.ID() {
			names = append(names, pin.Name)
		}
	}
	return names, nil
}

// completePins offers the names of the workspace's pins.
func (a *app) completePins(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || a.useSettings() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.json = true
	var names []string
	err := a.withView(cmd.Context(), func(p *place) error {
		var err error
		names, err = p.pinNames(cmd.Context())
		return err
	})
	if err != nil {
		names = nil
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
