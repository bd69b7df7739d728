package checkpoint

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// format is the version of all rows of this package except imported checkpoints.
// Releases that read only this version would mistake those for checkpoints of whole
// directories.
const (
	format         = 1
	importedFormat = 2
)

// Side is the side of a turn or message on which a checkpoint was taken.
type Side = stetv1.Side

// The sides. A checkpoint without a side is just a point in time.
const (
	NoSide = stetv1.Side_SIDE_UNSPECIFIED
	Before = stetv1.Side_SIDE_BEFORE
	After  = stetv1.Side_SIDE_AFTER
)

// Kind is why a checkpoint was made.
type Kind = stetv1.CheckpointKind

// The kinds.
const (
	Manual  = stetv1.CheckpointKind_CHECKPOINT_KIND_MANUAL
	Auto    = stetv1.CheckpointKind_CHECKPOINT_KIND_AUTO
	Safety  = stetv1.CheckpointKind_CHECKPOINT_KIND_SAFETY
	Rewound = stetv1.CheckpointKind_CHECKPOINT_KIND_REWIND
	Import  = stetv1.CheckpointKind_CHECKPOINT_KIND_IMPORT
)

// KindName returns the name of a kind in JSON and the API, such as "safety".
func KindName(k Kind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "CHECKPOINT_KIND_"))
}

// Record is a stored checkpoint.
type Record struct {
	// ID is a lower-case ULID. Any unique prefix names the checkpoint, too.
	ID string
	// Number counts the checkpoints of the workspace from 1 and is never reused; Name
	// formats it.
	Number    uint64
	Workspace string
	// Parent is the id of the checkpoint before this one in the workspace.
	Parent string
	Tree   blob.ID
	// Conversation, Root, MessageID and Turn are the place of the checkpoint in a
	// conversation; they are zero if unknown.
	Conversation string
	Root         blob.ID
	MessageID    string
	Turn         uint64
	Side         Side
	Author       string
	Label        string
	Tool         string
	Kind         Kind
	Time         time.Time
	// Touched lists the paths that the tool reported as written.
	Touched []string
	// Shared lists paths that the tool reported as written, and that something else
	// changed after it.
	Shared []string
	// AtWork lists the turns that were active at any time since the previous
	// checkpoint; Writer uses it.
	AtWork Turns
	// FilesChanged, LinesAdded and LinesRemoved compare with the parent. Lines are
	// counted in text files only, and not for the first checkpoint. LinesPartial
	// means that too many files changed to count all.
	FilesChanged, LinesAdded, LinesRemoved uint64
	LinesPartial                           bool
	// NotCaptured is the number of paths that were seen and not captured; List names
	// them.
	NotCaptured uint64
	// Hinted means that only the paths of Request.Paths were scanned.
	Hinted bool
	// Received means that the checkpoint came from another store; see MarkReceived.
	Received bool
	// Source is the id of the checkpoint of another program that an imported one, of kind
	// Import, was made from; see AddImported.
	Source string

	notCaptured blob.ID // blob of the list, or zero
	original    []byte  // hash of the row as it was first written, if it was rewritten
	version     uint64  // of the row, or 0
	unaware     bool    // made by a release without AtWork
	unfinished  bool    // its turn continues, although it is on its after side
	beside      []string
}

// Name returns the short name of the checkpoint within its workspace, such as "c7",
// or of an imported one within its conversation, such as "i7". It is as stable as the
// id.
func (r *Record) Name() string {
	if r.Kind == Import {
		return fmt.Sprintf("i%d", r.Number)
	}
	return fmt.Sprintf("c%d", r.Number)
}

func (r *Record) encode() ([]byte, error) {
	m := &stetv1.CheckpointRecord{
		Format: format, Id: r.ID, Workspace: r.Workspace, Number: r.Number, Parent: r.Parent,
		Tree: idBytes(r.Tree), Conversation: r.Conversation, Root: idBytes(r.Root), MessageId: r.MessageID,
		Turn: r.Turn, Side: r.Side, Author: r.Author, Label: r.Label, Tool: r.Tool, Kind: r.Kind,
		TimeMs: r.Time.UnixMilli(), Touched: pathBytes(r.Touched), Shared: pathBytes(r.Shared), FilesChanged: r.FilesChanged,
		LinesAdded: r.LinesAdded, LinesRemoved: r.LinesRemoved,
		NotCaptured: idBytes(r.notCaptured), NotCapturedCount: r.NotCaptured, Hinted: r.Hinted,
		LinesPartial: r.LinesPartial, Received: r.Received, Source: r.Source, Original: r.original,
	}
	if r.Kind == Import {
		m.Format = importedFormat
	}
	if !r.unaware {
		m.AtWork = r.AtWork.encode()
	}
	return marshal(m)
}

func decodeRecord(data []byte) (*Record, error) {
	var m stetv1.CheckpointRecord
	if err := unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	tree, err1 := optionalID(m.Tree)
	root, err2 := optionalID(m.Root)
	skipped, err3 := optionalID(m.NotCaptured)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, fmt.Errorf("read checkpoint %s: %w", m.Id, err)
		}
	}
	return &Record{
		ID: m.Id, Number: m.Number, Workspace: m.Workspace, Parent: m.Parent, Tree: tree,
		Conversation: m.Conversation, Root: root, MessageID: m.MessageId, Turn: m.Turn, Side: m.Side,
		Author: m.Author, Label: m.Label, Tool: m.Tool, Kind: m.Kind, Time: time.UnixMilli(m.TimeMs),
		Touched: pathStrings(m.Touched), Shared: pathStrings(m.Shared), FilesChanged: m.FilesChanged, LinesAdded: m.LinesAdded,
		LinesRemoved: m.LinesRemoved, NotCaptured: m.NotCapturedCount, Hinted: m.Hinted, notCaptured: skipped,
		LinesPartial: m.LinesPartial, AtWork: decodeTurns(m.AtWork), unaware: m.AtWork == nil,
		Received: m.Received, Source: m.Source, original: m.Original,
	}, nil
}

// formatted is what all rows have in common.
type formatted interface {
	proto.Message
	GetFormat() uint32
}

func marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// unmarshal reads a row. It rejects a newer format, because this release might
// misread it.
func unmarshal(data []byte, m formatted) error {
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Errorf("%w: %v", ErrBadRecord, err)
	}
	newest := uint32(format)
	switch m.(type) {
	case *stetv1.CheckpointRecord:
		newest = importedFormat
	case *stetv1.CheckpointPin:
		newest = pinFormat
	}
	switch f := m.GetFormat(); {
	case f == 0:
		return fmt.Errorf("%w: it has no format number", ErrBadRecord)
	case f > newest:
		return fmt.Errorf("%w: %d; this release reads up to %d", ErrNewerFormat, f, newest)
	}
	return nil
}

func idBytes(id blob.ID) []byte {
	if id.IsZero() {
		return nil
	}
	return id.Bytes()
}

func optionalID(b []byte) (blob.ID, error) {
	if len(b) == 0 {
		return blob.ID{}, nil
	}
	id, err := blob.IDFromBytes(b)
	if err != nil {
		return blob.ID{}, fmt.Errorf("%w: %w", ErrBadRecord, err)
	}
	return id, nil
}

// pathBytes and pathStrings exist because paths need not be UTF-8, which
// protobuf strings must be.
func pathBytes(paths []string) [][]byte {
	if len(paths) == 0 {
		return nil
	}
	out := make([][]byte, len(paths))
	for i, p := range paths {
		out[i] = []byte(p)
	}
	return out
}

func pathStrings(paths [][]byte) []string {
	if len(paths) == 0 {
		return nil
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = string(p)
	}
	return out
}
