// Package smoke tries a built program from outside, as its users do, on systems that the
// rest of the tests cannot have. STET_PROGRAM names the program, and STET_PROGRAM_WITH what
// runs it, if anything; without the first nothing is tried. stet-hook is beside it. Workspaces
// and stores are below STET_FOLDING, if that is set. A program that runs in another system has
// its own shell, STET_PROGRAM_SHELL, and its own name of the root directory,
// STET_PROGRAM_ROOT.
package smoke
