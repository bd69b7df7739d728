package transcript

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format is the output format of a transcript.
type Format string

// The formats.
const (
	// Markdown is for people and for other agents.
	Markdown Format = "md"
	// HTML is one self-contained page.
	HTML Format = "html"
	// JSON is one document with the complete transcript.
	JSON Format = "json"
	// JSONL is the reference's transcript, one line for a message. Messages of
	// subagents go into separate files: see WriteFiles.
	JSONL Format = "jsonl"
)

// Formats returns all formats.
func Formats() []Format { return []Format{Markdown, HTML, JSON, JSONL} }

// ParseFormat returns the format of that name.
func ParseFormat(name string) (Format, error) {
	f := Format(strings.ToLower(name))
	if f == "markdown" {
		f = Markdown
	}
	if !slices.Contains(Formats(), f) {
		return "", fmt.Errorf("unknown format %q; use md, html, json or jsonl", name)
	}
	return f, nil
}

// Write writes a transcript to w. Options select what is written, as in Messages.
func Write(ctx context.Context, w io.Writer, t *Transcript, f Format, opts *Options) error {
	b := bufio.NewWriterSize(w, 64<<10)
	var err error
	switch f {
	case Markdown:
		err = writeMarkdown(ctx, b, t, opts)
	case HTML:
		err = writeHTML(ctx, b, t, opts)
	case JSON:
		err = writeJSON(ctx, b, t, opts)
	case JSONL:
		err = writeJSONL(ctx, b, t, opts)
	default:
		_, err = ParseFormat(string(f))
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return fmt.Errorf("write transcript as %s: %w", f, err)
	}
	return nil
}
