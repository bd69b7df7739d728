// Package agentrun runs agents over the stream of agent.v1 in which a client, who
// has the workspace and keeps the conversation, works with a server, who knows
// what the agent does next.
//
// The client keeps every checkpoint that the server announces, executes what it
// is asked to, answers for blobs, and resumes from the latest checkpoint when the
// connection is lost:
//
//	h, err := agentrun.NewHandler(ctx, blobs, conv, nil)
//	result, err := agentrun.Run(ctx, agentrun.Connect(client), agentrun.Request{
//		Handler:  h,
//		Action:   agentrun.Say("add a retry to checkout"),
//		Executor: tools,
//		Ledger:   agentrun.NewLedger(rows, conv.ID()),
//	})
//
// The server drives an Agent, of which Scripted is one that tests and
// demonstrations use:
//
//	mux.Handle(agentv1connect.NewAgentServiceHandler(agentrun.NewService(agentrun.ServeOptions{Agent: agent})))
//
// What the package promises:
//
//   - A checkpoint is announced when everything that it names is durable at the
//     client, and a state is the latest when it is saved.
//   - No call of a tool is executed twice, however often the connection is lost
//     and also after a crash of the client. A call is executed when the state that
//     asks for it is saved, never before.
//   - No message of the user is lost or sent twice.
//
// Storing conversations is left to package conversation, the protocol for blobs
// to package kvstream, and what tools do to the Executor.
package agentrun
