package blame

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// agentTraceVersion is the version of the Agent Trace specification that is written.
const agentTraceVersion = "0.1.0"

// TraceRecord is a record of the Agent Trace format; see docs/format/agent-trace.md.
type TraceRecord struct {
	Version   string         `json:"version"`
	ID        string         `json:"id"`
	Timestamp string         `json:"timestamp"`
	Tool      TraceTool      `json:"tool"`
	Files     []TraceFile    `json:"files"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// TraceTool is the tool that wrote the record.
type TraceTool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// TraceFile is a file of a record.
type TraceFile struct {
	Path          string              `json:"path"`
	Conversations []TraceConversation `json:"conversations"`
}

// TraceConversation names lines of a file that one contributor wrote in one
// conversation.
type TraceConversation struct {
	URL         string           `json:"url,omitempty"`
	Contributor TraceContributor `json:"contributor"`
	Ranges      []TraceRange     `json:"ranges"`
	Related     []TraceRelated   `json:"related,omitempty"`
}

// TraceContributor is "human", "ai" or "unknown", with the model of an AI if it is known.
type TraceContributor struct {
	Type    string `json:"type"`
	ModelID string `json:"model_id,omitempty"`
}

// TraceRange is a range of lines, from 1, both ends included.
type TraceRange struct {
	StartLine   int    `json:"start_line"`
	EndLine     int    `json:"end_line"`
	ContentHash string `json:"content_hash"`
}

// TraceRelated is something else that belongs to a conversation, such as one of its turns.
type TraceRelated struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// AgentTrace returns the origins of files as a record of the Agent Trace format.
// Equal lines with equal origins give the same id.
func (r *Reader) AgentTrace(ctx context.Context, at time.Time, files ...*File) (*TraceRecord, error) {
	record := &TraceRecord{
		Version: agentTraceVersion, Timestamp: at.UTC().Format("2006-01-02T15:04:05.000Z"), Tool: TraceTool{Name: "stet"}, Files: []TraceFile{},
	}
	teller, sum := r.Teller(), sha256.New()
	for _, f := range files {
		teller.Expect(f)
		file, err := traceFile(ctx, teller, f)
		if err != nil {
			return nil, err
		}
		record.Files = append(record.Files, *file)
		fmt.Fprintf(sum, "%s %s %d\n", f.At.Workspace, f.At.Tree, len(f.Lines))
		fmt.Fprintf(sum, "%+v\n", *file)
	}
	if len(files) > 0 {
		about := map[string]string{"workspace": files[0].At.Workspace, "tree": files[0].At.Tree.String()}
		if id := files[0].At.ID; id != "" {
			about["checkpoint"] = id
		}
		record.Metadata = map[string]any{"dev.stet": about}
	}
	record.ID = uuid(sum.Sum(nil))
	return record, nil
}

// uuid makes the first bytes of a hash a UUID of version 8, whose bits are free.
func uuid(sum []byte) string {
	id := slices.Clone(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	text := hex.EncodeToString(id)
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

// traceKey is what the lines of one entry have in common.
type traceKey struct{ conversation, kind, model string }

func traceFile(ctx context.Context, teller *Teller, f *File) (*TraceFile, error) {
	out := &TraceFile{Path: f.Path, Conversations: []TraceConversation{}}
	index := make(map[traceKey]int)
	last := -1 // entry of the line before
	var text []byte
	for i, line := range f.Lines {
		o := &f.Origins[line.Origin]
		words, err := teller.Words(ctx, o)
		if err != nil {
			return nil, err
		}
		key := traceKey{kind: "unknown"}
		switch o.Kind {
		case You:
			key.kind = "human"
		case Agent:
			key = traceKey{o.Writer.Conversation, "ai", modelID(words.Model)}
		case Several:
			key.kind = "ai"
		}
		n, ok := index[key]
		if !ok {
			n = len(out.Conversations)
			index[key] = n
			entry := TraceConversation{Contributor: TraceContributor{key.kind, key.model}}
			if key.conversation != "" {
				entry.URL = "urn:stet:conversation:" + url.PathEscape(key.conversation)
			}
			out.Conversations = append(out.Conversations, entry)
		}
		entry := &out.Conversations[n]
		if entry.URL != "" && o.Writer.Turn > 0 {
			entry.relate(fmt.Sprintf("%s:turn:%d", entry.URL, o.Writer.Turn))
		}
		if n == last && i > 0 && f.Lines[i-1].Number == line.Number-1 {
			entry.Ranges[len(entry.Ranges)-1].EndLine = line.Number
			text = append(text, line.Text...)
		} else {
			entry.Ranges = append(entry.Ranges, TraceRange{StartLine: line.Number, EndLine: line.Number})
			text = []byte(line.Text)
		}
		sum := sha256.Sum256(text)
		entry.Ranges[len(entry.Ranges)-1].ContentHash = "sha256:" + hex.EncodeToString(sum[:])
		last = n
	}
	return out, nil
}

// relate adds a turn once.
func (c *TraceConversation) relate(turn string) {
	if !slices.ContainsFunc(c.Related, func(r TraceRelated) bool { return r.URL == turn }) {
		c.Related = append(c.Related, TraceRelated{"turn", turn})
	}
}

// providers are the makers of models by the beginning of their names.
var providers = []struct{ prefix, name string }{
	{"claude", "anthropic"}, {"gpt", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"}, {"codex", "openai"},
	{"gemini", "google"}, {"qwen", "alibaba"}, {"grok", "xai"}, {"deepseek", "deepseek"}, {"mistral", "mistral"},
}

// maxModelID is the length that the format allows.
const maxModelID = 250

// modelID spells a model as the format requires: with its maker, if the name reveals
// it.
func modelID(model string) string {
	if model == "" || strings.Contains(model, "/") || len(model) > maxModelID-20 {
		return model[:min(len(model), maxModelID)]
	}
	for _, p := range providers {
		if strings.HasPrefix(strings.ToLower(model), p.prefix) {
			return p.name + "/" + model
		}
	}
	return model
}
