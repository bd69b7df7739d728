// Package demo plays scripted agents in a store, so that everything can be tried without
// one. The stories are data, in the txtar files of the directory stories; this package
// reads them and saves each turn as a real agent's would be saved: with checkpoints
// before and after it, with model, tokens and cost, tool calls, subagents, rewinds and
// pins. Tools have the names, arguments and results that they have in the records of the
// agents, and become conversations in the way of package intake. Nothing leaves the machine,
// and no command of a story is run.
//
//	told, err := demo.Tell(ctx, demo.Stage{DB: db, Options: opts, User: "ada"}, dir, demo.Shop())
//
// # Stories
//
// The head of a story has lines of the form "field: value": title, agent, place (the
// directory of the workspace), ago (when it began), model (that answers), pin ("turn name")
// and start (the story whose files are there in the beginning, besides its own). Then come files:
//
//	start/PATH            what is there before the agent comes
//	1/yours/PATH          what the user writes before turn 1
//	1/scene               fields: ask, message, minutes, tokens, cost, run, fail, remove, back
//	1/think, 1/say        what the agent thinks first, and its answer
//	1/out/1, 1/failure    what the first command printed, and the one that failed
//	1/helper              a subagent; fields: id, message, ask, tokens, run
//	1/helper/think, …     the same of the subagent: think, say and out
//	1/files/PATH          what the agent writes
//	fork/scene, fork/say  a turn of a fork after the first turn; also the field title
//	end/PATH              what the user writes at the end
//
// tokens are how many were read, written and read from a cache; cost is in dollars.
// run, fail and remove may be repeated; back is the turn to which the user then goes
// back. Texts lose their last line break, files keep it.
package demo
