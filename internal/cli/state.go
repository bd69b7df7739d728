package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

func (a *app) stateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "state",
		Short:   "Look inside the stored state of a conversation",
		GroupID: groupPlumbing,
		Long: `The state of a conversation is a root: a blob that names the blobs of its turns,
todos, summaries and files. REF is a conversation (its current state), a
checkpoint or other reference of this workspace, a message id together with -c, or
the 64 hexadecimal digits of a root.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.stateShow(), a.stateDag())
	return cmd
}

func (a *app) stateShow() *cobra.Command {
	return &cobra.Command{
		Use:               "show REF",
		Short:             "Print the fields of a state",
		Long:              "Print the fields of a state. --json prints the whole structure in protobuf's JSON\nform, and the ids of the blobs that it refers to as hex.",
		Example:           "  stet state show 01JCX4\n  stet state show pin:before-retry --json | jq .refs",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				root, err := a.resolveRoot(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return lostState(args[0], root, a.showState(cmd.Context(), db, root))
			})
		},
	}
}

// resolveRoot finds the root that a reference names.
func (a *app) resolveRoot(ctx context.Context, db *stet.DB, ref string) (blob.ID, error) {
	if id, err := blob.ParseID(ref); err == nil {
		return id, nil
	}
	if a.conversation != "" {
		id, err := conversationID(ctx, db, a.conversation)
		if err != nil {
			return blob.ID{}, err
		}
		root, err := db.Conversations().MessageHead(ctx, id, ref)
		if !errors.Is(err, conversation.ErrNotFound) {
			return root, err
		}
	}
	id, err := conversationID(ctx, db, ref)
	if err == nil {
		return headOf(ctx, db, id)
	}
	if code, _ := Code(err); code != ExitNotFound {
		return blob.ID{}, err
	}
	return a.checkpointRoot(ctx, db, ref)
}

type refJSON struct {
	Field string  `json:"field"`
	Kind  string  `json:"kind"`
	ID    blob.ID `json:"id"`
}

func (a *app) showState(ctx context.Context, db *stet.DB, root blob.ID) error {
	data, err := db.Blobs().Get(ctx, root)
	if err != nil {
		return err
	}
	refs, err := graph.Refs(graph.State, data)
	if err != nil {
		return coded(ExitDamage, "%s is not a state: %w", root.Short(), err)
	}
	var state agentv1.ConversationStateStructure
	if err := wirelimit.Unmarshal(data, &state, nil); err != nil {
		return coded(ExitDamage, "%s is not a state: %w", root.Short(), err)
	}
	if a.json {
		structure, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&state)
		if err != nil {
			return err
		}
		list := make([]refJSON, len(refs))
		for i, r := range refs {
			list[i] = refJSON{r.Field, r.Kind.String(), r.ID}
		}
		return a.printJSON(map[string]any{
			"schema": "stet.state.v1", "root": root, "size": len(data), "refs": list, "state": json.RawMessage(structure),
		})
	}
	_, err = fmt.Fprint(a.out, a.stateText(root, len(data), &state, refs))
	return err
}

func (a *app) stateText(root blob.ID, size int, state proto.Message, refs []graph.Ref) string {
	p := a.paint()
	var text strings.Builder
	line := func(name, value string) { fmt.Fprintf(&text, "%s  %s\n", p.dim(pad(name, 28)), value) }
	line("root", p.yellow(root.String()))
	line("size", byteSize(int64(size)))
	byField := make(map[string][]string)
	for _, r := range refs {
		top, _, _ := strings.Cut(r.Field, ".")
		byField[top] = append(byField[top], r.ID.Short())
	}
	m := state.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) {
			continue
		}
		value := fieldText(f, m.Get(f))
		if ids := byField[string(f.Name())]; len(ids) > 0 {
			value += "  " + p.yellow(few(ids, 3))
		}
		line(string(f.Name()), value)
	}
	if unknown := len(m.GetUnknown()); unknown > 0 {
		line("(fields of a newer release)", byteSize(int64(unknown)))
	}
	return text.String()
}

// fieldText describes a field briefly.
func fieldText(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case f.IsList():
		return fmt.Sprint(v.List().Len())
	case f.IsMap():
		var keys []string
		v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
			keys = append(keys, k.String())
			return true
		})
		slices.Sort(keys)
		return fmt.Sprintf("%d (%s)", v.Map().Len(), few(keys, 4))
	case f.Kind() == protoreflect.BytesKind:
		return byteSize(int64(len(v.Bytes())))
	case f.Kind() == protoreflect.MessageKind:
		short, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(v.Message().Interface())
		if err != nil {
			return "(cannot be shown)"
		}
		return clip(string(short), 100)
	case f.Kind() == protoreflect.EnumKind:
		if value := f.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
	}
	return clip(v.String(), 100)
}
