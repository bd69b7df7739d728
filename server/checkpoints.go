package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// checkpointService is stet.v1.CheckpointService. A workspace is named by its
// absolute path on this machine or by its id, and is open only during a call, so that
// others can use it in between.
type checkpointService struct {
	db      *stet.DB
	settler *settler
}

// in calls do with an open workspace.
func (s *checkpointService) in(ctx context.Context, name string, do func(*checkpoint.Workspace) error) error {
	return s.inBy(ctx, s.db.Checkpoints(), name, do)
}

// inSettled is in for calls that capture or change files.
func (s *checkpointService) inSettled(ctx context.Context, name string, do func(*checkpoint.Workspace) error) error {
	return s.in(ctx, name, func(w *checkpoint.Workspace) error {
		s.settler.settle(ctx, w)
		return do(w)
	})
}

// inBy is in with a given service.
func (s *checkpointService) inBy(ctx context.Context, service *checkpoint.Service, name string, do func(*checkpoint.Workspace) error) (err error) {
	path, err := s.directory(ctx, name)
	if err != nil {
		return err
	}
	where := callOf(ctx).where
	if path, err = where.resolve(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("open workspace: %w", err))
	case errors.Is(err, fs.ErrPermission):
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("open workspace: %w", err))
	case err != nil:
		return fmt.Errorf("open workspace: %w", err)
	case !info.IsDir():
		return invalid("workspace %s is not a directory", path)
	}
	w, err := service.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if !where.holds(w.Path()) { // replaced by a link meanwhile
		return errForeignPlace
	}
	return do(w)
}

// directory returns the path of a workspace.
func (s *checkpointService) directory(ctx context.Context, name string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		return name, nil
	case !isWorkspaceID(name):
		return "", errNoWorkspace(name)
	}
	return s.db.Checkpoints().WorkspacePath(ctx, name)
}

func isWorkspaceID(name string) bool {
	return len(name) == len(checkpoint.WorkspaceID("")) && strings.Trim(name, "0123456789abcdef") == ""
}

// resolve finds a checkpoint. Reading one touches no directory.
func (s *checkpointService) resolve(ctx context.Context, place, conv, ref string) (*checkpoint.Record, error) {
	id, err := workspaceID(ctx, place)
	if err != nil {
		return nil, err
	}
	rec, err := s.db.Checkpoints().Resolve(ctx, id, conv, ref)
	if err == nil && rec == nil {
		err = fmt.Errorf("%w: %q is the current workspace", checkpoint.ErrBadRef, ref)
	}
	return rec, err
}

// workspaceID returns the id of a workspace that a request names by path or by id, or
// "". It follows links in a path that the caller may use.
func workspaceID(ctx context.Context, name string) (string, error) {
	switch {
	case name == "" || isWorkspaceID(name):
		return name, nil
	case !filepath.IsAbs(name):
		return "", errNoWorkspace(name)
	}
	path := filepath.Clean(name)
	if allowed, err := callOf(ctx).where.resolve(path); err == nil {
		path = allowed
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
	}
	return checkpoint.WorkspaceID(path), nil
}

// Create captures a workspace.
func (s *checkpointService) Create(ctx context.Context, req *stetv1.CreateCheckpointRequest) (*stetv1.CreateCheckpointResponse, error) {
	if err := checkPaths(req.GetPaths()); err != nil {
		return nil, err
	}
	if _, known := stetv1.Side_name[int32(req.GetSide())]; !known {
		return nil, invalid("side %d is unknown", req.GetSide())
	}
	root, err := s.rootAt(ctx, req.GetConversation(), req.GetMessageId())
	if err != nil {
		return nil, err
	}
	by, err := holder(ctx, req)
	if err != nil {
		return nil, err
	}
	var made *checkpoint.Result
	err = s.inSettled(ctx, req.GetWorkspace(), func(w *checkpoint.Workspace) (err error) {
		made, err = w.Checkpoint(ctx, checkpoint.Request{
			Conversation: req.GetConversation(), Root: root, MessageID: req.GetMessageId(), Turn: uint64(req.GetTurn()), Side: req.GetSide(),
			Author: req.GetAuthor(), Label: req.GetLabel(), Tool: req.GetTool(), Touched: req.GetPaths(), Paths: req.GetPaths(),
			Holder: by, Auto: req.GetAuto(),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if made.Record == nil && made.Skipped == checkpoint.SkippedThrottled {
		return &stetv1.CreateCheckpointResponse{Skipped: made.Skipped}, nil
	}
	if made.Record == nil {
		return nil, fmt.Errorf("%w: %s", checkpoint.ErrDisabled, made.Skipped)
	}
	d, err := s.describer(ctx)
	if err != nil {
		return nil, err
	}
	out, err := d.checkpoint(ctx, made.Record)
	if err != nil {
		return nil, err
	}
	out.NotCaptured = wireSkipped(made.NotCaptured)
	res := &stetv1.CreateCheckpointResponse{Checkpoint: out, NotKept: wireNotKept(&made.NotKept)}
	if made.StateError != nil {
		res.StateLost = made.StateError.Error()
	}
	return res, nil
}

// holder returns what holds a turn open: the process that the caller names. A process
// of another machine cannot be seen from here, so only callers on this machine may
// name one. Its command is not looked up, because everyone who reads the workspace
// would see it.
func holder(ctx context.Context, req *stetv1.CreateCheckpointRequest) (checkpoint.Holder, error) {
	if req.GetPid() == 0 {
		return checkpoint.Holder{}, nil
	}
	if req.GetSide() != checkpoint.Before || req.GetConversation() == "" {
		return checkpoint.Holder{}, invalid("pid needs a conversation and the side before")
	}
	if !onThisMachine(ctx) {
		return checkpoint.Holder{}, invalid("pid is only for callers on the server's machine")
	}
	if req.GetPid() > math.MaxInt32 {
		return checkpoint.Holder{}, invalid("no such pid")
	}
	return checkpoint.HolderOf(int(req.GetPid()), req.GetAuthor())
}

// rootAt returns the state of a conversation at a message, else the current one; zero
// if only the name of the conversation is known.
func (s *checkpointService) rootAt(ctx context.Context, conv, message string) (root blob.ID, err error) {
	if conv == "" {
		return root, nil
	}
	if message != "" {
		root, err = s.db.Conversations().MessageHead(ctx, conv, message)
		if !errors.Is(err, conversation.ErrNotFound) {
			return root, err
		}
	}
	root, err = s.db.Conversations().Head(ctx, conv)
	if errors.Is(err, conversation.ErrNotFound) {
		return blob.ID{}, nil
	}
	return root, err
}

// List omits what checkpoints did not capture; Get includes it.
func (s *checkpointService) List(ctx context.Context, req *stetv1.ListCheckpointsRequest) (*stetv1.ListCheckpointsResponse, error) {
	return wire.Fitting(uint32(wire.PageSize(req.GetPage().GetLimit())), func(limit int) (*stetv1.ListCheckpointsResponse, error) {
		before := req.GetPage().GetCursor()
		if before != "" && !checkpoint.ValidID(before) {
			return nil, errCursor()
		}
		d, err := s.describer(ctx)
		if err != nil {
			return nil, err
		}
		res := &stetv1.ListCheckpointsResponse{}
		fill := func(records iter.Seq2[*checkpoint.Record, error]) error {
			for rec, err := range records {
				var bad *checkpoint.UnreadableError
				if errors.As(err, &bad) {
					res.Damaged = append(res.Damaged, &stetv1.Unreadable{Id: wire.Valid(bad.ID), Detail: wire.Valid(err.Error())})
					continue
				}
				if err != nil {
					return err
				}
				if before != "" && rec.ID >= before {
					continue
				}
				if len(res.Checkpoints) == limit {
					res.NextCursor = res.Checkpoints[limit-1].GetId()
					return nil
				}
				out, err := d.checkpoint(ctx, rec)
				if err != nil {
					return err
				}
				res.Checkpoints = append(res.Checkpoints, out)
			}
			return nil
		}
		switch {
		case req.GetWorkspace() != "":
			err = s.in(ctx, req.GetWorkspace(), func(w *checkpoint.Workspace) error {
				return fill(w.List(ctx, &checkpoint.ListOptions{Conversation: req.GetConversation(), Before: before}))
			})
		case req.GetConversation() != "":
			err = fill(s.db.Checkpoints().ListConversation(ctx, req.GetConversation()))
		default:
			err = fill(s.db.Checkpoints().List(ctx, &checkpoint.ListOptions{Before: before}))
		}
		if err != nil {
			return nil, err
		}
		return res, nil
	})
}

func (s *checkpointService) Get(ctx context.Context, req *stetv1.GetCheckpointRequest) (*stetv1.GetCheckpointResponse, error) {
	rec, err := s.resolve(ctx, req.GetWorkspace(), req.GetConversation(), req.GetRef())
	if err != nil {
		return nil, err
	}
	d, err := s.describer(ctx)
	if err != nil {
		return nil, err
	}
	out, err := d.checkpoint(ctx, rec)
	if err != nil {
		return nil, err
	}
	skipped, err := s.db.Checkpoints().NotCaptured(ctx, rec)
	if err != nil {
		return nil, lost(err)
	}
	out.NotCaptured = wireSkipped(skipped)
	return &stetv1.GetCheckpointResponse{Checkpoint: out}, nil
}

func (s *checkpointService) Pin(ctx context.Context, req *stetv1.PinRequest) (*stetv1.PinResponse, error) {
	rec, err := s.resolve(ctx, req.GetWorkspace(), req.GetConversation(), req.GetRef())
	if err != nil {
		return nil, err
	}
	if err := s.db.Checkpoints().Pin(ctx, req.GetName(), rec.ID, ""); err != nil {
		return nil, err
	}
	return &stetv1.PinResponse{}, nil
}

func (s *checkpointService) Unpin(ctx context.Context, req *stetv1.UnpinRequest) (*stetv1.UnpinResponse, error) {
	id, err := workspaceID(ctx, req.GetWorkspace())
	if err != nil {
		return nil, err
	}
	if err := s.db.Checkpoints().Unpin(ctx, id, req.GetName(), ""); err != nil {
		return nil, err
	}
	return &stetv1.UnpinResponse{}, nil
}

func (s *checkpointService) ListPins(ctx context.Context, _ *stetv1.ListPinsRequest) (*stetv1.ListPinsResponse, error) {
	pins, err := timeline.New(s.db.Checkpoints(), s.db.Conversations()).Pins(ctx)
	if err != nil {
		return nil, err
	}
	res := &stetv1.ListPinsResponse{}
	for _, pin := range pins {
		info := &stetv1.PinInfo{Name: wire.Valid(pin.Name), Checkpoint: pin.Checkpoint, TimeMs: pin.Time.UnixMilli(), Workspace: pin.Path}
		if !utf8.ValidString(pin.Path) {
			info.Workspace = pin.Workspace
		}
		if pin.Record != nil {
			info.Conversation, info.CheckpointName = pin.Record.Conversation, pin.Record.Name()
		}
		res.Pins = append(res.Pins, info)
	}
	return res, nil
}

// describer turns records into messages. It is for one call and caches what many of
// them share.
type describer struct {
	db    *stet.DB
	pins  map[string][]string // by checkpoint
	paths map[string]string   // by workspace
}

func (s *checkpointService) describer(ctx context.Context) (*describer, error) {
	d := &describer{db: s.db, pins: make(map[string][]string), paths: make(map[string]string)}
	for pin, err := range s.db.Checkpoints().Pins(ctx) {
		if err != nil {
			return nil, err
		}
		d.pins[pin.Checkpoint] = append(d.pins[pin.Checkpoint], pin.Name)
	}
	return d, nil
}

// path returns the directory of a workspace, or its id if the path is not valid text.
func (d *describer) path(ctx context.Context, id string) (string, error) {
	if path, ok := d.paths[id]; ok || id == "" {
		return path, nil
	}
	path, err := d.db.Checkpoints().WorkspacePath(ctx, id)
	if errors.Is(err, checkpoint.ErrNotFound) {
		err = nil
	}
	if path == "" || !utf8.ValidString(path) {
		path = id
	}
	d.paths[id] = path
	return path, err
}

// importedFrom returns the directory of an imported checkpoint, which need not belong
// to a workspace of this store. Only its conversation has the path.
func (d *describer) importedFrom(ctx context.Context, rec *checkpoint.Record) string {
	info, err := d.db.Conversations().Get(ctx, rec.Conversation)
	if err == nil && utf8.ValidString(info.Workspace) && checkpoint.WorkspaceID(info.Workspace) == rec.Workspace {
		d.paths[rec.Workspace] = info.Workspace
		return info.Workspace
	}
	return rec.Workspace
}

func (d *describer) checkpoint(ctx context.Context, rec *checkpoint.Record) (*stetv1.Checkpoint, error) {
	path, err := d.path(ctx, rec.Workspace)
	if err != nil {
		return nil, err
	}
	if path == rec.Workspace && rec.Kind == checkpoint.Import {
		path = d.importedFrom(ctx, rec)
	}
	out := &stetv1.Checkpoint{
		Id: rec.ID, Conversation: rec.Conversation, Tree: rec.Tree.Bytes(), MessageId: rec.MessageID, Side: rec.Side, Parent: rec.Parent,
		TimeMs: rec.Time.UnixMilli(), Author: rec.Author, Label: rec.Label, Workspace: path, Turn: uint32(rec.Turn),
		FilesChanged: uint32(rec.FilesChanged), Pins: d.pins[rec.ID],
		Kind: checkpoint.KindName(rec.Kind),
	}
	if !rec.LinesPartial { // the message has no field for partial counts
		out.LinesAdded, out.LinesRemoved = uint32(rec.LinesAdded), uint32(rec.LinesRemoved)
	}
	if !rec.Root.IsZero() {
		out.Root = rec.Root.Bytes()
	}
	return out, nil
}

func wireSkipped(skipped []workspace.Skipped) []*stetv1.SkippedFile {
	var out []*stetv1.SkippedFile
	room := wire.MaxMessage / 4
	for i, k := range skipped {
		if room -= len(k.Path) + fileBytes; room < 0 {
			return append(out, &stetv1.SkippedFile{Path: fmt.Sprintf("and %d more", len(skipped)-i), Reason: "too many to list"})
		}
		out = append(out, &stetv1.SkippedFile{Path: wire.Valid(k.Path), PathBytes: workspace.PathBytes(k.Path), Reason: string(k.Reason)})
	}
	return out
}
