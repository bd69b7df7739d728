package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// Scope is what a rewind moves.
type Scope string

// The scopes. The empty one moves the files, and the conversation if the target has
// one and Options.Conversations is set.
const (
	FilesOnly        Scope = "files"
	ConversationOnly Scope = "conversation"
	Both             Scope = "both"
)

// RewindRequest describes a rewind.
type RewindRequest struct {
	// To is a reference to a checkpoint; see Workspace.Resolve.
	To string
	// Conversation is the conversation whose changes are reverted; the target's if
	// empty. If the target has none either, changes of all conversations are reverted.
	Conversation string
	Scope        Scope
	// Paths limits the rewind to these paths and everything below them.
	Paths []string
	// Exact makes the files exactly those of the checkpoint, regardless of authors:
	// nothing is a conflict, nothing captured is kept. Files that no checkpoint could
	// have, such as special files and ignored files that were never captured, stay, and
	// so do files that existed then but were not captured. It can be combined only with
	// To and Paths.
	Exact bool
	// OnlyTurn reverts the changes of one turn of the conversation and keeps later
	// ones. If the conversation went back, the number means the turn on its present
	// line. To is not used; conversations are not moved, so a Scope with one is an error.
	OnlyTurn uint64
	// Exchange goes to a tree that no checkpoint has, such as one converted from
	// another form. To is not used; conversations are not moved.
	Exchange *Exchange
	// Lines puts back lines of one file of the checkpoint, instead of whole files. Later
	// changes of the file stay; where the same lines were changed since, the plan has a
	// conflict. Conversations are not moved. It can be combined only with To.
	Lines *Lines
	// Elsewhere accepts an imported checkpoint of another directory, and treats its
	// paths as paths of this one.
	Elsewhere bool
	// Choice is what to do about conflicts; Choices overrides it for single paths.
	Choice  Choice
	Choices map[string]Choice
	Author  string
	// Agree, if not nil, is called by Rewind with the plan before anything is changed or
	// saved. If it returns an error, Rewind returns that. The workspace is locked
	// meanwhile: ask people beforehand, with Plan.
	Agree func(context.Context, *Plan) error
	// Progress is called with the number of steps done and the total.
	Progress func(done, all int)
}

// Exchange describes a rewind without a checkpoint.
type Exchange struct {
	// To is the target tree, and Last the last tree of the agent: differences from it
	// are the user's.
	To, Last blob.ID
	// Paths are the affected paths; others are left alone.
	Paths []string
	// Adopts names the branch whose files are adopted, for the log; empty for an
	// exchange that goes back.
	Adopts string
}

func (r *RewindRequest) choice(path string) Choice {
	if r.Exact {
		return Theirs
	}
	if c, ok := r.Choices[path]; ok {
		return c
	}
	if r.Choice == "" {
		return KeepMine
	}
	return r.Choice
}

// keeps reports whether the request says that a conflict at a path stays as it is.
func (r *RewindRequest) keeps(path string) bool {
	if c, ok := r.Choices[path]; ok {
		return c == KeepMine
	}
	return r.Choice == KeepMine
}

func (r *RewindRequest) asks(path string) bool {
	return len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(p string) bool { return within(path, p) })
}

// Plan is what a rewind would do.
type Plan struct {
	// Token identifies the plan: its inputs and its actions. A different state of the
	// workspace or a different choice gives a different token.
	Token string
	// Target is the target checkpoint; nil for a plan without one, such as one that
	// removes a single turn.
	Target *Record
	// Actions are sorted by path.
	Actions []Action
	// Untouched is the number of other files.
	Untouched int
	// NotCaptured lists paths that the current tree does not cover; all of them are
	// left alone.
	NotCaptured []workspace.Skipped
	// NotKept describes what no checkpoint stores of the files that the plan replaces or
	// deletes: an undo restores them without it.
	NotKept workspace.NotKept
	// Lost describes, for people, what the file system of the workspace cannot hold of
	// what is restored.
	Lost []string
	// Conversation is the conversation whose changes are reverted; empty for all.
	Conversation string
	// AtWork lists the running turns in the workspace: they may change files again
	// after the rewind.
	AtWork Turns
	// RootBefore and RootAfter are the states of the conversation before and after;
	// RootAfter is zero if the conversation stays where it is.
	RootBefore, RootAfter blob.ID

	request RewindRequest
	present blob.ID // tree
	foreign bool    // the target is from another store
	stays   string  // why the conversation does, although it was to move
	// ancestry is the conversation and those whose turns it shares; nil without one. The
	// latter are the origins, also of what an undo takes back.
	ancestry ancestry
	origins  []string
	wasThere bool // the target is a place of the conversation, also if an origin keeps its turns
}

// Request returns the request of the plan. Rewind with it and the plan's token does
// what the plan lists. The plan of an undo or a redo has no request: see Undo.
func (p *Plan) Request() RewindRequest { return p.request }

// OnlyTurn returns the single turn that the plan reverts, or 0.
func (p *Plan) OnlyTurn() uint64 { return p.request.OnlyTurn }

// Adopts returns the branch whose files the plan adopts, or "".
func (p *Plan) Adopts() string {
	if p.request.Exchange == nil {
		return ""
	}
	return p.request.Exchange.Adopts
}

// Conflicts lists the paths that need a choice.
func (p *Plan) Conflicts() []string {
	var out []string
	for i := range p.Actions {
		if p.Actions[i].Kind == Conflict {
			out = append(out, p.Actions[i].Path)
		}
	}
	return out
}

// Changes returns the number of paths that the plan changes.
func (p *Plan) Changes() int {
	n := 0
	for i := range p.Actions {
		if p.Actions[i].Changes() {
			n++
		}
	}
	return n
}

// Files returns the number of files that the plan changes. Directories are not counted.
func (p *Plan) Files() int {
	n := 0
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Changes() && !isDir(cmp.Or(a.After, a.Before)) {
			n++
		}
	}
	return n
}

// sign computes the token.
func (p *Plan) sign(workspace string) {
	h := sha256.New()
	put := func(parts ...string) {
		for _, s := range parts {
			fmt.Fprintf(h, "%d:", len(s))
			_, _ = io.WriteString(h, s) // never fails
		}
	}
	put("stet plan 1", workspace, p.Conversation, string(p.request.Scope), string(p.request.Choice))
	put(p.present.String())
	if !p.RootAfter.IsZero() { // else it does not matter where the conversation is
		put(p.RootBefore.String(), p.RootAfter.String())
	}
	if p.Target != nil {
		put(p.Target.ID, p.Target.Tree.String())
	}
	if p.request.Exact {
		put("exact")
	}
	if e := p.request.Exchange; e != nil {
		put("exchange", e.To.String(), e.Last.String())
	}
	if l := p.request.Lines; l != nil {
		put("lines", l.Path, l.From, fmt.Sprint(l.Ranges))
	}
	for _, path := range p.request.Paths {
		put("path", path)
	}
	for _, path := range slices.Sorted(maps.Keys(p.request.Choices)) {
		put("choice", path, string(p.request.Choices[path]))
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		put(a.Path, string(a.Kind), entryText(a.Before), entryText(a.After))
	}
	p.Token = hex.EncodeToString(h.Sum(nil)[:16])
}

func entryText(e *workspace.Entry) string {
	if e == nil {
		return ""
	}
	if e.Kind == workspace.Dir {
		return fmt.Sprintf("%s %o", e.Kind, e.Mode)
	}
	return fmt.Sprintf("%s %o %s", e.Kind, e.Mode, e.ID)
}

// PlanSchema is the schema of a plan in JSON.
const PlanSchema = "stet.rewind.plan.v1"

// MarshalJSON returns the plan in its stable JSON form.
func (p *Plan) MarshalJSON() ([]byte, error) {
	type file struct {
		Path   string     `json:"path"`
		Bytes  []byte     `json:"path_bytes,omitempty"`
		Action ActionKind `json:"action"`
		Add    uint64     `json:"add"`
		Del    uint64     `json:"del"`
		Kind   string     `json:"kind,omitempty"`
		Reason string     `json:"reason,omitempty"`
		Why    Why        `json:"why,omitempty"`
		Merged bool       `json:"merged,omitempty"`
		// Unmerged says why a merge cannot resolve a conflict, whether or not one was
		// requested.
		Unmerged string  `json:"unmerged,omitempty"`
		Writer   *Writer `json:"writer,omitempty"`
	}
	type move struct {
		ID   string  `json:"id"`
		From blob.ID `json:"from"`
		To   blob.ID `json:"to"`
	}
	out := struct {
		Schema       string              `json:"schema"`
		To           *RecordJSON         `json:"to"`
		Token        string              `json:"plan_token"`
		Exact        bool                `json:"exact,omitempty"`
		Partial      bool                `json:"partial"`
		Files        []file              `json:"files"`
		Untouched    int                 `json:"untouched"`
		NotCaptured  []workspace.Skipped `json:"not_captured"`
		NotKept      *workspace.NotKept  `json:"not_kept,omitempty"`
		Lost         []string            `json:"lost,omitempty"`
		Conversation *move               `json:"conversation,omitempty"`
		Stays        string              `json:"conversation_stays,omitempty"`
		AtWork       []TurnJSON          `json:"at_work,omitempty"`
	}{
		Schema: PlanSchema, Token: p.Token, Exact: p.request.Exact, Partial: p.Partial(), Untouched: p.Untouched,
		Files: make([]file, 0, len(p.Actions)), NotCaptured: append([]workspace.Skipped{}, p.NotCaptured...),
		AtWork: p.AtWork.JSON(), Stays: p.stays, Lost: p.Lost,
	}
	if !p.NotKept.None() {
		out.NotKept = &p.NotKept
	}
	if p.Target != nil {
		out.To = p.Target.JSON()
	}
	if !p.RootAfter.IsZero() {
		out.Conversation = &move{ID: p.Conversation, From: p.RootBefore, To: p.RootAfter}
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		f := file{Path: a.Path, Bytes: workspace.PathBytes(a.Path), Action: a.Kind, Add: a.Add, Del: a.Del, Reason: a.Reason, Why: a.Why, Merged: a.Merged, Unmerged: a.NoMerge, Writer: a.Writer}
		if e := cmpEntry(a.Before, a.After); e != nil {
			f.Kind = e.Kind.String()
		}
		out.Files = append(out.Files, f)
	}
	return json.Marshal(out)
}

func cmpEntry(entries ...*workspace.Entry) *workspace.Entry {
	for _, e := range entries {
		if e != nil {
			return e
		}
	}
	return nil
}

// RecordJSON is a checkpoint in its stable JSON form.
type RecordJSON struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Conversation string `json:"conversation,omitempty"`
	Tree         string `json:"tree"`
	Root         string `json:"root,omitempty"`
	MessageID    string `json:"message_id,omitempty"`
	Turn         uint64 `json:"turn,omitempty"`
	Side         string `json:"side,omitempty"`
	Author       string `json:"author,omitempty"`
	Label        string `json:"label,omitempty"`
	Tool         string `json:"tool,omitempty"`
	Time         string `json:"time"`
	FilesChanged uint64 `json:"files_changed"`
	LinesAdded   uint64 `json:"lines_added"`
	LinesRemoved uint64 `json:"lines_removed"`
	LinesPartial bool   `json:"lines_partial,omitempty"`
	Source       string `json:"source,omitempty"`
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// JSON returns the checkpoint in its stable JSON form.
func (r *Record) JSON() *RecordJSON {
	out := &RecordJSON{
		ID: r.ID, Name: r.Name(), Conversation: r.Conversation, Tree: r.Tree.String(), MessageID: r.MessageID, Turn: r.Turn,
		Author: r.Author, Label: r.Label, Tool: r.Tool, Time: stamp(r.Time),
		FilesChanged: r.FilesChanged, LinesAdded: r.LinesAdded, LinesRemoved: r.LinesRemoved, LinesPartial: r.LinesPartial,
		Source: r.Source,
	}
	if !r.Root.IsZero() {
		out.Root = r.Root.String()
	}
	switch r.Side {
	case Before:
		out.Side = "before"
	case After:
		out.Side = "after"
	}
	return out
}
