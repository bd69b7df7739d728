// Package smoke tries a built program from outside, as its users do, on systems that the
// rest of the tests cannot have. STET_PROGRAM names the program, and STET_PROGRAM_WITH what
// runs it, if anything; without the first nothing is tried. Workspaces and stores are below
// STET_FOLDING, if that is set.
package smoke
