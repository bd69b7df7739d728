package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/transcript"
)

func (a *app) askCommand() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:     "ask [TEXT]",
		Short:   "Send a message to the agent of a server",
		GroupID: groupMove,
		Long: `Send a message to the agent that a server runs ('stet serve --agent') and print its
answer. The conversation is kept in this store: every state that the agent announces is
saved here with its blobs, and a lost connection is resumed from the latest one.

-c continues a conversation; otherwise a new one begins. Without TEXT, an interrupted run
is resumed. --from is the http(s) address of the server; it needs a token with the write
scope (STET_TOKEN_FILE or STET_TOKEN). Nothing runs on this machine: tools that the agent
asks for are refused.`,
		Example: "  stet ask 'what is a checkpoint?' --from http://127.0.0.1:7717\n  stet ask -c 01JCX4 'and a rewind?' --from http://127.0.0.1:7717\n  stet ask -c 01JCX4 --from http://127.0.0.1:7717",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isRemote(a.storePlace()) {
				return usage(errors.New("the conversation is stored on this machine; name the server with --from, not --store"))
			}
			if !isRemote(from) {
				return usage(fmt.Errorf("--from: %q is not an http or https address", from))
			}
			if len(args) == 0 && a.conversation == "" {
				return usage(errors.New("TEXT is missing; to resume a run, pass -c CONVERSATION"))
			}
			return a.withStore(cmd.Context(), true, func(db *stet.DB) error {
				return a.askAgent(cmd.Context(), db, strings.TrimSuffix(from, "/"), args)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "address of the server")
	return cmd
}

type askJSON struct {
	Schema       string `json:"schema"`
	Conversation string `json:"conversation"`
	Root         string `json:"root"`
	Turns        int    `json:"turns"`
	Resumed      int    `json:"resumed"`
	Text         string `json:"text"`
}

// askAgent runs the agent until it has answered.
func (a *app) askAgent(ctx context.Context, db *stet.DB, address string, texts []string) error {
	c, err := a.dialRemote(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	conv, err := a.askedConversation(ctx, db, texts)
	if err != nil {
		return err
	}
	before, err := conv.Turns(ctx)
	if err != nil {
		return err
	}
	handler, err := agentrun.NewHandler(ctx, db.Blobs(), conv, nil)
	if err != nil {
		return err
	}
	action := agentrun.Resume()
	if len(texts) > 0 {
		action = agentrun.Say(texts[0])
	} else {
		before = max(before-1, 0) // the turn that is resumed
	}
	hc, base := c.HTTP()
	result, err := agentrun.Run(ctx, agentrun.Connect(agentv1connect.NewAgentServiceClient(hc, base)), agentrun.Request{
		Handler: handler, Action: action, Ledger: agentrun.NewLedger(db.Rows(), conv.ID()),
		OnResume: func(_ int, cause error) { a.say("connection lost, resuming: %v", cause) },
	})
	if err != nil {
		return fmt.Errorf("%w; conversation %s holds what was saved; 'stet ask -c' without TEXT resumes it", err, conv.ID())
	}
	text, err := answers(ctx, db, conv.ID(), before)
	if err != nil {
		return err
	}
	a.say("conversation %s", conv.ID())
	value := askJSON{
		Schema: "stet.ask.v1", Conversation: conv.ID(), Root: conv.Head().Root.String(), Turns: result.Turns, Resumed: result.Resumed, Text: text,
	}
	return a.print(value, printableLines(text)+"\n")
}

// askedConversation opens the conversation that -c names, or begins one.
func (a *app) askedConversation(ctx context.Context, db *stet.DB, texts []string) (*conversation.Conversation, error) {
	if a.conversation != "" {
		id, err := conversationID(ctx, db, a.conversation)
		if err != nil {
			return nil, err
		}
		return db.Conversations().Open(ctx, id)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	title, _, _ := strings.Cut(strings.TrimSpace(texts[0]), "\n")
	if runes := []rune(title); len(runes) > 80 {
		title = string(runes[:80])
	}
	return db.Conversations().Create(ctx, conversation.Info{Title: title, Workspace: dir, Agent: "stet"})
}

// answers returns what the agent said in the turns after the first ones.
func answers(ctx context.Context, db *stet.DB, id string, from int) (string, error) {
	t, err := transcript.New(db.Conversations(), db.Blobs()).Conversation(ctx, id)
	if err != nil {
		return "", err
	}
	var said []string
	for m, err := range t.Messages(ctx, &transcript.Options{TurnFrom: from, WithoutSubagents: true, WithoutSummaries: true}) {
		if err != nil {
			return "", err
		}
		if m.Role == transcript.Assistant && m.Kind == transcript.Text && m.Subagent == "" {
			said = append(said, m.Text)
		}
	}
	return strings.Join(said, "\n\n"), nil
}
