// Package agentv1 is the wire format of agents: conversations and their parts
// as they are stored, the run stream, and the key-value side channel over which
// a server reaches the blobs of its client.
//
// Messages come in two forms. Those whose name ends in Structure refer to their
// parts by blob id and are what is stored; the others have their parts inline.
// Tools and requests that are only carried are left out and survive as unknown
// fields.
//
//	state := new(agentv1.ConversationStateStructure)
//	if err := proto.Unmarshal(root, state); err != nil {
//		return fmt.Errorf("decode state: %w", err)
//	}
//	for _, id := range state.GetTurns() {
//		// id names a blob that holds a ConversationTurnStructure
//	}
package agentv1
