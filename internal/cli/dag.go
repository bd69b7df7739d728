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
was shown before is marked and not followed again. --json gives one object for
each reference; --dot gives input for graphviz. A missing or damaged blob
is listed, and gives exit code 6.`,
		Example:           "  stet state dag 01JCX4 --depth 2\n  stet state dag 01JCX4 --dot | dot -Tsvg > state.svg",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				root, err := a.resolveRoot(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return a.printDag(cmd.Context(), db.Blobs(), root, depth, dot)
			})
		},
	}
	cmd.Flags().IntVar(&depth, "depth", 0, "depth to follow (0: no limit)")
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

// dagPrinter follows references depth first, in the order of the stored bytes.
type dagPrinter struct {
	app    *app
	store  blob.Store
	depth  int
	dot    bool
	seen   graph.Set
	broken int
}

func (a *app) printDag(ctx context.Context, store blob.Store, root blob.ID, depth int, dot bool) error {
	d := &dagPrinter{app: a, store: store, depth: depth, dot: dot}
	if dot {
		fmt.Fprintln(a.out, "digraph state {\n  rankdir=LR; node [shape=box, fontname=monospace];")
	}
	if err := d.visit(ctx, graph.Ref{Kind: graph.State, ID: root}, blob.ID{}, 0); err != nil {
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

func (d *dagPrinter) visit(ctx context.Context, r graph.Ref, from blob.ID, level int) error {
	node := dagJSON{Schema: "stet.dag.v1", ID: r.ID, Kind: r.Kind.String(), Field: r.Field, Depth: level}
	if !from.IsZero() {
		node.From = &from
	}
	node.Again = !d.seen.Add(r.ID, r.Kind)
	var refs []graph.Ref
	if !node.Again {
		data, err := d.store.Get(ctx, r.ID)
		if err == nil {
			node.Size = len(data)
			refs, err = graph.Refs(r.Kind, data)
		}
		switch {
		case level == 0 && errors.Is(err, blob.ErrNotFound):
			return err // not damage, only a wrong name
		case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrCorrupt), errors.Is(err, graph.ErrMalformed):
			node.Error = err.Error()
			d.broken++
		case err != nil:
			return err
		}
	}
	if err := d.print(node); err != nil {
		return err
	}
	if d.depth > 0 && level >= d.depth {
		return nil
	}
	for _, next := range refs {
		if err := d.visit(ctx, next, r.ID, level+1); err != nil {
			return err
		}
	}
	return nil
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
