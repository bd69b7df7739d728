package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/fleet"
)

// houseOptions converts settings to the tasks of a fleet.
func houseOptions(all settings) (fleet.HouseOptions, error) {
	r := limits{settings: all}
	age := func(key string) time.Duration { return r.age(key, key, "") }
	o := fleet.HouseOptions{
		ArchiveEvery: age("house.archive_every"), ArchiveIdle: age("house.archive_idle"),
		CollectEvery: age("house.collect_every"), Grace: age("house.grace"),
	}
	p := r.policies(gcFlags{})
	o.Saves, o.Checkpoints = p.saves, p.checkpoints
	return o, r.err
}

// keepHouse runs the housekeeping of a fleet beside a server. The result ends it.
func keepHouse(ctx context.Context, f *fleet.Fleet, all settings) (stop func(), err error) {
	if !all.on("house.enabled") {
		return func() {}, nil
	}
	opts, err := houseOptions(all)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.KeepHouse(ctx, f.HouseTasks(opts)...)
	}()
	return func() {
		cancel()
		<-done
	}, nil
}

func (a *app) fleetHouse() *cobra.Command {
	var pause string
	var resume bool
	cmd := &cobra.Command{
		Use:   "house",
		Short: "Show the housekeeping of the servers, or pause it",
		Long: `Show when the servers last archived and collected, which server did it, and whether it
failed. One server at a time runs each task, at the intervals of the settings house.*.

With --pause, the servers start no task for some time, for example during a backup. A
task that is running continues to its end and is shown as running. --resume ends the
pause.`,
		Example: "  stet fleet house\n  stet fleet house --pause 6h\n  stet fleet house --resume",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			wait, err := parseAge(pause)
			if err != nil {
				return usage(fmt.Errorf("--pause: %w", err))
			}
			return a.withFleet(ctx, func(f *fleet.Fleet) error {
				if resume || wait > 0 {
					var until time.Time
					if wait > 0 {
						until = f.Postgres().Now().Add(wait)
					}
					if err := f.PauseHouse(ctx, until); err != nil {
						return err
					}
				}
				return a.showHouse(ctx, f)
			})
		},
	}
	cmd.Flags().StringVar(&pause, "pause", "", "start no task during this time, such as 6h")
	cmd.Flags().BoolVar(&resume, "resume", false, "end the pause")
	exclude(cmd, "pause", "resume")
	return cmd
}

type houseJSON struct {
	Schema string            `json:"schema"`
	Paused string            `json:"paused_until,omitempty"`
	Tasks  []fleet.TaskState `json:"tasks"`
}

func (a *app) showHouse(ctx context.Context, f *fleet.Fleet) error {
	states, err := f.House(ctx)
	if err != nil {
		return err
	}
	until, err := f.HousePaused(ctx)
	if err != nil {
		return err
	}
	value := houseJSON{Schema: "stet.fleet.house.v1", Tasks: append([]fleet.TaskState{}, states...)}
	if !until.IsZero() {
		value.Paused = until.UTC().Format(time.RFC3339)
	}
	return a.print(value, houseText(value))
}

func houseText(v houseJSON) string {
	var text strings.Builder
	if v.Paused != "" {
		fmt.Fprintf(&text, "paused until %s\n", v.Paused)
	}
	if len(v.Tasks) == 0 {
		text.WriteString("no server has done any housekeeping yet\n")
	}
	for _, s := range v.Tasks {
		fmt.Fprintf(&text, "%s: %s", s.Name, lastRun(s))
		if s.Running != "" {
			fmt.Fprintf(&text, "; running on %s", s.Running)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

func lastRun(s fleet.TaskState) string {
	if s.Began.IsZero() {
		return "has not run yet"
	}
	when := fmt.Sprintf("%s on %s, after %s", s.Ended.Format(time.RFC3339), s.Node, duration(s.Ended.Sub(s.Began)))
	switch {
	case s.Error == "":
		return fmt.Sprintf("succeeded %s; handled %d", when, s.Done)
	case s.Succeeded.IsZero():
		return fmt.Sprintf("failed %s: %s", when, s.Error)
	}
	return fmt.Sprintf("failed %s: %s; last success %s", when, s.Error, s.Succeeded.Format(time.RFC3339))
}
