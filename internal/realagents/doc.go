// Package realagents drives the coding agents that people run: the real programs at
// pinned versions, without a screen, against a scripted model, each with a home and a
// workspace of its own.
//
//	box := realagents.NewBox(t, agent)
//	box.Stet("connect", agent.Name, "-y")
//	box.Prompt(nil, "make a file\n::write a.txt one\n::say done")
//	box.Stet("log")
//	requests := box.Model.Requests() // what the agent showed to the model
//
// Tests of this package run with STET_AGENTS=1 only (`make test-agents`). [Main] gives
// them a network that ends at this computer where the system allows it; elsewhere the
// agents are told to use a proxy that is not there. Versions are named in
// internal/tools/agents.sh, which installs the programs.
package realagents
