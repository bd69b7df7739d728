// Package foreign defines what stet needs to know about other people's coding agents:
// where an agent keeps its sessions, what happened in them, how to make it call stet,
// and how its own conversation continues after an earlier turn.
//
// The package promises only terms that all agents share: a [Session] is one
// conversation of an agent under the agent's own id, a [Turn] is everything from one
// prompt to the next, a [Step] is a reply, a thought or the call of a tool, an
// [Event] is what a hook reports while the agent works. An [Adapter] translates one
// agent into these terms; it never changes what belongs to the agent, except where a
// method says so. Adapters are separate packages; package agents lists them, and
// package foreigntest tests each against the same contract.
//
// Writing sessions into a store is left to package intake, and taking checkpoints at
// events to the hook client.
package foreign
