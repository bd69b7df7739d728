// Package agentrun runs agents over the stream of agent.v1 between a client, which
// has the workspace and the conversation, and a server, which decides what the agent
// does next.
//
// The client saves every checkpoint that the server announces, executes its requests,
// serves blobs, and resumes from the latest checkpoint when the connection is lost:
//
//	h, err := agentrun.NewHandler(ctx, blobs, conv, nil)
//	result, err := agentrun.Run(ctx, agentrun.Connect(client), agentrun.Request{
//		Handler:  h,
//		Action:   agentrun.Say("add a retry to checkout"),
//		Executor: tools,
//		Ledger:   agentrun.NewLedger(rows, conv.ID()),
//	})
//
// The server drives an Agent. Scripted is one for tests and demonstrations:
//
//	mux.Handle(agentv1connect.NewAgentServiceHandler(agentrun.NewService(agentrun.ServeOptions{Agent: agent})))
//
// What the package promises:
//
//   - A checkpoint is announced once everything that it names is durable at the
//     client. A state becomes the latest once it is saved.
//   - No tool call is executed twice, however often the connection is lost, even
//     after a crash of the client. A call is executed only after the state that
//     requests it is saved.
//   - No message of the user is lost or sent twice.
//
// Storing conversations is left to package conversation, the protocol for blobs
// to package kvstream, and what tools do to the Executor.
package agentrun
