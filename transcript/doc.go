// Package transcript shows conversations as messages that people and programs
// can read, and writes them as Markdown, HTML, JSON and JSON lines.
//
// A Reader makes a Transcript of a conversation, of a root or of a state. Its
// messages come one after another, in pages of turns, so that a long
// conversation needs little memory:
//
//	r := transcript.New(conversations, blobs)
//	t, err := r.Conversation(ctx, id)
//	for m, err := range t.Messages(ctx, nil) { … }
//	err = transcript.Write(ctx, w, t, transcript.Markdown, nil)
//
// What agents and tools say is hostile input. Markdown and HTML neither run nor
// load anything that it names, and Visible makes text safe for a terminal. JSON
// and JSON lines keep it as it is.
//
// Background writes the files of transcripts while work goes on. Searching is
// left to package search, changing conversations to package conversation.
package transcript
