package transcript

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"time"
)

// Schema names the form of the JSON document.
const Schema = "stet.export.v1"

// about is the head of an exported document.
type about struct {
	ID        string            `json:"id,omitempty"`
	Title     string            `json:"title,omitempty"`
	Workspace string            `json:"workspace,omitempty"`
	Agent     string            `json:"agent,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Created   time.Time         `json:"created_at,omitzero"`
	Updated   time.Time         `json:"updated_at,omitzero"`
	Turns     int               `json:"turns"`
	Save      uint64            `json:"save,omitempty"`
	Root      string            `json:"root,omitempty"`
	Forked    string            `json:"forked_from,omitempty"`
}

func (t *Transcript) about() about {
	i := t.Info
	a := about{
		ID: i.ID, Title: i.Title, Workspace: i.Workspace, Agent: i.Agent, Labels: i.Labels,
		Turns: t.Turns(), Save: i.Save, Forked: i.ForkedFrom,
	}
	if !i.Created.IsZero() {
		a.Created, a.Updated = i.Created.UTC(), i.Updated.UTC()
	}
	if !t.Root.IsZero() {
		a.Root = t.Root.String()
	}
	return a
}

// writeJSON writes the document piece by piece, so that it is never in memory as a
// whole.
func writeJSON(ctx context.Context, w *bufio.Writer, t *Transcript, opts *Options) error {
	head, err := marshal(t.about())
	if err != nil {
		return err
	}
	w.WriteString("{\n\"schema\":\"" + Schema + "\",\n\"conversation\":")
	w.Write(head)
	w.WriteString(",\n\"messages\":[")
	separator := "\n"
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return err
		}
		line, err := marshal(m)
		if err != nil {
			return err
		}
		w.WriteString(separator)
		if _, err := w.Write(line); err != nil {
			return err
		}
		separator = ",\n"
	}
	_, err = w.WriteString("\n]\n}\n")
	return err
}

// marshal encodes a value on one line, without the escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
