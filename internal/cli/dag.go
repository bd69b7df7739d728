package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
)

func (a *app) stateDag() *cobra.Command {
	var depth int
	var dot bool
	cmd := &cobra.Command{
		Use:   "dag REF",
		Short: "Print all references of a state as a tree",
		Long: `Print every blob that a state reaches, with the field that names it. A blob that
was shown before is marked and not followed again. --json prints one object for
each reference; --dot prints input for graphviz. If a blob is missing or damaged,
it is listed, and the exit code is 6.`,
		Example:           "  stet state dag 01JCX4 --depth 2\n  stet state dag 01JCX4 --dot | dot -Tsvg > state.svg",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				root, err := a.resolveRoot(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return lostState(args[0], root, a.printDag(cmd.Context(), db.Blobs(), root, depth, dot))
			})
		},
	}
	countFlag(cmd.Flags(), &depth, "depth", "", 0, "depth to follow (0: no limit)")
	cmd.Flags().BoolVar(&dot, "dot", false, "print a graph for graphviz")
	return cmd
}

type dagJSON struct {
	Schema string   `json:"schema"`
	ID     blob.ID  `json:"id"`
	Kind   string   `json:"kind"`
	Field  string   `json:"field,omitempty"`
	From   *blob.ID `json:"from,omitempty"`
	Size   int      `json:"size"`
	Depth  int      `json:"depth"`
	Again  bool     `json:"again,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// dagPrinter prints references in the order of the stored bytes.
type dagPrinter struct {
	app    *app
	dot    bool
	broken int
}

func (a *app) printDag(ctx context.Context, store blob.Store, root blob.ID, depth int, dot bool) error {
	d := &dagPrinter{app: a, dot: dot}
	if dot {
		fmt.Fprintln(a.out, "digraph state {\n  rankdir=LR; node [shape=box, fontname=monospace];")
	}
	if _, err := graph.Look(ctx, store, graph.Root{Kind: graph.State, ID: root}, &graph.LookOptions{Depth: depth}, d.show); err != nil {
		return err
	}
	if dot {
		fmt.Fprintln(a.out, "}")
	}
	if d.broken > 0 {
		return silentExit{ExitDamage}
	}
	return nil
}

func (d *dagPrinter) show(s *graph.Sight) error {
	node := dagJSON{Schema: "stet.dag.v1", ID: s.ID, Kind: s.Kind.String(), Field: s.Field, Size: s.Size, Depth: s.Depth, Again: s.Again}
	if s.Depth > 0 {
		node.From = &s.From
	}
	if s.Depth == 0 && errors.Is(s.Err, blob.ErrNotFound) {
		return s.Err // not damage, only a wrong name
	}
	if s.Err != nil {
		node.Error = s.Err.Error()
		d.broken++
	}
	return d.print(node)
}

func (d *dagPrinter) print(n dagJSON) error {
	if d.dot && !d.app.json {
		var text strings.Builder
		if !n.Again {
			fmt.Fprintf(&text, "  %q [label=\"%s\\n%s\"];\n", n.ID.Short(), n.Kind, n.ID.Short())
		}
		if n.From != nil {
			fmt.Fprintf(&text, "  %q -> %q [label=%q];\n", n.From.Short(), n.ID.Short(), n.Field)
		}
		_, err := d.app.out.Write([]byte(text.String()))
		return err
	}
	p := d.app.paint()
	note := byteSize(int64(n.Size))
	switch {
	case n.Error != "":
		note = p.red(printable(n.Error))
	case n.Again:
		note = p.dim("shown above")
	}
	name := n.Kind
	if n.Field != "" && n.Field != n.Kind {
		name += p.dim(" (" + n.Field + ")")
	}
	return d.app.print(n, fmt.Sprintf("%s%s  %s  %s\n", strings.Repeat("  ", n.Depth), p.yellow(n.ID.Short()), name, note))
}
