// Package transcript presents conversations as messages for people and programs, and
// writes them as Markdown, HTML, JSON and JSON lines.
//
// A Reader makes a Transcript of a conversation, a root or a state. It reads messages
// in pages of turns, so a long conversation needs little memory:
//
//	r := transcript.New(conversations, blobs)
//	t, err := r.Conversation(ctx, id)
//	for m, err := range t.Messages(ctx, nil) { … }
//	err = transcript.Write(ctx, w, t, transcript.Markdown, nil)
//
// Text of agents and tools is hostile input. The Markdown and HTML output neither
// runs nor loads anything from it, and Visible makes text safe for a terminal. JSON
// and JSON lines keep it unchanged.
//
// Background writes transcript files in the background. Searching is left to package
// search, changing conversations to package conversation.
package transcript
