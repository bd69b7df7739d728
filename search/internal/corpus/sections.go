package corpus

import (
	"context"
	"strconv"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/transcript"
)

// Section is a part of a conversation. A conversation is indexed in sections, each
// with a digest: its title, its summaries, every turn and every subagent, and the
// same of branches left behind by rewinds. A section with a known digest is not read
// again.
type Section struct {
	Name   string
	Digest blob.ID
	// Read returns its messages.
	Read func(context.Context) ([]transcript.Message, error)
	// Save is the last save of the branch, 0 for the current state.
	Save uint64
	// Besides names the section of the current state that has the same turn. Text in
	// both is found once.
	Besides string

	// alone is Read for a caller that reads no other section.
	alone func(context.Context) ([]transcript.Message, error)
}

// Text returns one message of a section; ok is false if there is none at that place.
func (s Section) Text(ctx context.Context, place int) (d Doc, ok bool, err error) {
	read := s.Read
	if s.alone != nil {
		read = s.alone
	}
	messages, err := read(ctx)
	if err != nil || place >= len(messages) {
		return d, false, err
	}
	return NewDoc(messages[place]), true, nil
}

// pager reads turns in order, some at a time.
type pager struct {
	t        *transcript.Transcript
	subagent string
	from     int
	turns    [][]transcript.Message
}

func (p *pager) turn(ctx context.Context, i, most int) ([]transcript.Message, error) {
	if i < p.from || i >= p.from+len(p.turns) {
		n := min(most, p.t.Turns()-i)
		opts := &transcript.Options{TurnFrom: i, TurnTo: i + n, WithoutSubagents: true, WithoutSummaries: true, Lenient: true}
		p.from, p.turns = i, make([][]transcript.Message, n)
		messages, err := collect(ctx, p.t, p.subagent, opts)
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if at := m.Turn - 1 - i; at >= 0 && at < n {
				p.turns[at] = append(p.turns[at], m)
			}
		}
	}
	return p.turns[i-p.from], nil
}

// collect returns messages, as those of a subagent if one is named.
func collect(ctx context.Context, t *transcript.Transcript, subagent string, opts *transcript.Options) ([]transcript.Message, error) {
	var all []transcript.Message
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return nil, err
		}
		if m.Kind == transcript.Failure {
			continue
		}
		if m.Subagent == "" {
			m.Subagent = subagent
		}
		all = append(all, m)
	}
	return all, nil
}

// Doc is a message as indexed.
type Doc struct {
	transcript.Message
	Tool, Body, Path string
	// Time is in milliseconds, 0 if unknown.
	Time   int64
	Digest []byte
}

// NewDoc converts a message to its indexed form.
func NewDoc(m transcript.Message) Doc {
	d := Doc{Message: m, Body: Indexed(bodyOf(m))}
	d.Role = m.Speaker()
	if m.Tool != nil {
		d.Tool, d.Path = Cut(m.Tool.Name, maxField), Indexed(Cut(m.Tool.Path, maxField))
	}
	if !m.Time.IsZero() {
		d.Time = m.Time.UnixMilli()
	}
	var b []byte
	for _, s := range []string{m.ID, strconv.Itoa(m.Turn), string(d.Role), string(m.Kind), m.Subagent, d.Tool, d.Path, strconv.FormatInt(d.Time, 10), d.Body} {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(append(b, ':'), s...)
	}
	sum := blob.Sum(b)
	d.Digest = sum.Bytes()[:16]
	d.ID, d.Subagent = Cut(d.ID, maxField), Cut(d.Subagent, maxField)
	return d
}

// maxField limits names and paths.
const maxField = 4096

// Weight is the weight of a match in a section.
func (d *Doc) Weight(save uint64) float64 {
	if save > 0 {
		return weightOf(d.Message) * leftWeight
	}
	return weightOf(d.Message)
}

// Empty reports whether it has no searchable text.
func (d *Doc) Empty() bool { return d.Body == "" && d.Path == "" }
