// Package blame says where each line of a file came from: the turn of an agent, with its
// prompt and tool, or the user.
//
// It only reads, and returns values; the command line and the server lay them out.
//
//	reader := blame.New(blobs, checkpoints, conversations)
//	file, err := reader.File(ctx, rec, "main.go")
//	for _, line := range file.Lines {
//		fmt.Println(line.Number, file.Origins[line.Origin].Writer.Turn, line.Text)
//	}
//
// The versions of a file, and who made each, come from the checkpoints of its
// workspace (checkpoint.Service.Versions). Trace compares them line by line. A line
// keeps its origin as long as it stays, also in a renamed file. A rewind, an undo or
// a redo is not an origin: a line that it restores gets its first origin back.
//
// Nothing is guessed that checkpoints cannot show. A line that existed before the
// first checkpoint, that was written between two checkpoints whose intermediate ones
// are forgotten, or that was written while several agents worked and none of them
// claimed it, has an origin that says so. Only the tool call inside a turn is found
// by its text: it is the last one of the turn whose edit of the file has the line.
//
// Package linediff compares texts, and package timeline reads the prompt of a turn.
package blame
