// Package blame says where each line of a file came from: the turn of an agent, with its
// prompt and tool, or the user.
//
// It only reads, and returns values: the command line and the server lay them out.
//
//	reader := blame.New(blobs, checkpoints, conversations)
//	file, err := reader.File(ctx, rec, "main.go")
//	for _, line := range file.Lines {
//		fmt.Println(line.Number, file.Origins[line.Origin].Writer.Turn, line.Text)
//	}
//
// The versions of a file, and who made each, come from the checkpoints of its workspace
// (checkpoint.Service.Versions). Trace compares them line by line. A line keeps its origin
// as long as it stays, also in a renamed file. A rewind, an undo or a redo writes nothing:
// a line that it brings back has its first origin again.
//
// What checkpoints cannot say is not guessed: a line that was there before the first
// checkpoint, or was written between two of which those between are forgotten, or while
// several agents worked and none of them claimed it, has an origin that says so. Only the
// tool call inside a turn is found by its text: it is the last one of the turn whose edit
// of the file has the line.
//
// Package linediff compares texts, and package timeline reads what a turn asked for.
package blame
