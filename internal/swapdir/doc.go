// Package swapdir changes many paths of a directory all or nothing.
//
// It is the disk engine of a rewind. The caller says what becomes of each path, where
// new contents come from, and keeps a journal; the package stages the contents inside
// the directory, lets staged and present files trade places, and takes that back. It
// knows neither why the paths change nor where a journal is kept:
//
//	root, err := swapdir.Open(dir, nil)
//	swap, err := root.Begin(".stage-1", changes, contents)
//	err = swap.Stage(ctx)       // new contents are durable; nothing has changed yet
//	save(swap.Name(), swap.Steps()) // the caller's journal, durable before Run
//	err = swap.Check()          // remembers what is about to be replaced
//	err = swap.Run(ctx, nil)    // takes the steps; the names are durable
//	err = swap.Undisturbed()    // nobody wrote to what was replaced
//	forget()                    // the caller's journal: from here on the change took place
//	err = swap.Remove()
//
// After an error of any of these, and before the journal is gone, RollBack takes the
// steps back. After a crash, the caller's journal decides:
//
//   - While the journal exists the change did not take place. The caller passes it to
//     Resume and calls RollBack, then forgets the journal, then calls Remove. RollBack
//     goes by what it finds on the disk, so it can follow a crash at any instruction,
//     its own included, and may be repeated.
//   - Without a journal the change took place, or never began. What is left is at most
//     the staging directory; Stages finds it and RemoveStage removes it.
//
// What the package promises:
//
//   - Nothing is overwritten. A path and its replacement trade places, or the old object
//     is moved aside first. If it is not the one that Check saw, Run fails with
//     ErrChanged, and RollBack puts it back.
//   - RollBack leaves alone what others changed after the steps were taken, and names it.
//   - Nothing outside the directory is reached, whatever others do to it meanwhile: paths
//     are resolved from a descriptor of the root and never through a symbolic link.
//   - A file is staged with its mode, and as root with its owner. Blocks of zeros become
//     holes.
//
// It leaves to others: locking (one Swap of a directory at a time), the journal, and
// whether present contents are what the caller wants to replace, which it compares
// between Check and Run.
//
// # Other systems
//
// The rules are in files without a build constraint. They work on two types, disk and
// stageDir, whose methods are the whole of what touches the file system: disk_unix.go,
// stagedir_unix.go and remove_unix.go implement them over descriptors, and each Unix system
// has a file of its own with the same functions, such as sys_linux.go: openPath, openBeneath,
// exchange, renameNew, createUnnamed, nameIn, chmodPath, flush, flushAll, toStat and
// stampClock.
//
// disk_portable.go and stagedir_portable.go implement the two types through os.Root, for
// Windows; the build tag portable has them on other systems too, for tests. There a file
// cannot trade places: the old one is moved aside first, so that a path is missing for a
// moment. A program that turns a directory into a link at the right moment can lead a
// change to another place inside the root.
package swapdir
