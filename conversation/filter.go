package conversation

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// A conversation is listed under its workspace, under its agent and under both, so that a
// list of those reads nothing else. These rows are created and removed with its record.
// They are ordered by spans of 17 minutes, not by times: a save moves them only if it is in
// another span than the previous one, so few saves write more rows than without a filter.
// Inside a span a list takes the order from the rows of all conversations. The keys hold
// sums with a random salt: names can be guessed, and the keys of an encrypted store are
// readable.
// are readable.

// filtersKey is the row with the salt. It also records how much of a store filled by an
// earlier release has been read.
var filtersKey = keyspace.Setting("filters")

// filters is the content of that row.
type filters struct {
	salt    []byte
	built   bool   // every conversation is listed
	done    string // otherwise: conversations up to this id are, and newly created ones
	version uint64 // of the row

	// known caches sums for a caller that needs those of many conversations, most of which
	// share workspaces and agents; nil caches none.
	known map[[2]string]string
}

const (
	saltSize = 16
	// byTime is the state of the row. Rows in other states are of earlier releases and had
	// no spans.
	byTime = "by-time"
)

func (f *filters) row() []byte {
	state := byTime
	if !f.built {
		state += " after " + keyspace.Escape(f.done)
	}
	return []byte(hex.EncodeToString(f.salt) + " " + state)
}

// decodeFilters reads the row.
func decodeFilters(row kv.Row) (*filters, error) {
	text, state, _ := strings.Cut(string(row.Value), " ")
	salt, err := hex.DecodeString(text)
	f := &filters{salt: salt, built: state == byTime, version: row.Version}
	done, building := strings.CutPrefix(state, byTime+" after ")
	if building {
		f.done = keyspace.Unescape(done)
	}
	earlier := state == "built" || strings.HasPrefix(state, "after ")
	if err != nil || len(salt) != saltSize || !f.built && !building && !earlier {
		return nil, corrupt(row, "it is not a salt and a state")
	}
	return f, nil
}

// sum is the part of a key that stands for a value of a kind.
func (f *filters) sum(kind, value string) string {
	h := hmac.New(sha256.New, f.salt)
	h.Write([]byte(kind + "\x00" + value))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// sumOf returns the sum under which conversations with a workspace and an agent are
// listed. One of the two may be empty.
func (f *filters) sumOf(workspace, agent string) string {
	sum, ok := f.known[[2]string{workspace, agent}]
	if ok {
		return sum
	}
	switch {
	case agent == "":
		sum = f.sum("workspace", workspace)
	case workspace == "":
		sum = f.sum("agent", agent)
	default:
		sum = f.sum("workspace and agent", workspace+"\x00"+agent)
	}
	if f.known != nil {
		f.known[[2]string{workspace, agent}] = sum
	}
	return sum
}

// keys returns the keys of the rows that list a conversation last changed at the given
// time.
func (f *filters) keys(rec *stetv1.ConversationRecord, unixMS int64) (keys []string) {
	workspace, agent := rec.GetWorkspace(), rec.GetAgent()
	add := func(workspace, agent string) {
		keys = append(keys, keyspace.ConversationOf(f.sumOf(workspace, agent), keyspace.Span(unixMS), rec.GetId()))
	}
	if workspace != "" {
		add(workspace, "")
	}
	if agent != "" {
		add("", agent)
	}
	if workspace != "" && agent != "" {
		add(workspace, agent)
	}
	return keys
}

// earlier returns the keys of the rows of earlier releases.
func (f *filters) earlier(rec *stetv1.ConversationRecord) (keys []string) {
	if rec.GetWorkspace() != "" {
		keys = append(keys, keyspace.EarlierConversationOf(f.sumOf(rec.GetWorkspace(), ""), rec.GetId()))
	}
	if rec.GetAgent() != "" {
		keys = append(keys, keyspace.EarlierConversationOf(f.sumOf("", rec.GetAgent()), rec.GetId()))
	}
	return keys
}

// unfiled returns the keys to remove with a conversation last changed at the given time.
func (f *filters) unfiled(rec *stetv1.ConversationRecord, unixMS int64) []string {
	keys := f.keys(rec, unixMS)
	if !f.built {
		keys = append(keys, f.earlier(rec)...)
	}
	return keys
}

// loadFilters reads the row. The error may be kv.ErrNotFound, or be Damaged.
func (s *Store) loadFilters(ctx context.Context) (*filters, error) {
	row, err := s.rows.Get(ctx, filtersKey)
	if err != nil {
		return nil, fmt.Errorf("read filters: %w", err)
	}
	return decodeFilters(row)
}

// readFilters returns the row, or nil if it is missing or damaged: lists are then read as
// a whole.
func (s *Store) readFilters(ctx context.Context) (*filters, error) {
	f, err := s.loadFilters(ctx)
	if errors.Is(err, kv.ErrNotFound) || Damaged(err) {
		return nil, nil
	}
	return f, err
}

// makeFilters returns the row for a commit that lists a conversation. It makes the row
// if there is none, and returns nil for a damaged one.
func (s *Store) makeFilters(ctx context.Context) (*filters, error) {
	if f := s.filters.Load(); f != nil {
		return f, nil
	}
	for n := range attempts {
		f, err := s.loadFilters(ctx)
		switch {
		case err == nil:
			s.filters.Store(f)
			return f, nil
		case Damaged(err):
			return nil, nil
		case !errors.Is(err, kv.ErrNotFound):
			return nil, err
		}
		if err := s.addFilters(ctx, filePage>>n); err != nil && !errors.Is(err, kv.ErrConflict) {
			return nil, fmt.Errorf("write filters: %w", err)
		}
	}
	return nil, fmt.Errorf("write filters: %w", kv.ErrConflict)
}

// addFilters makes the row. A few conversations of an earlier release are listed right
// away; many are left to FileAll.
func (s *Store) addFilters(ctx context.Context, size int) error {
	f := &filters{salt: make([]byte, saltSize)}
	rand.Read(f.salt) // never fails
	_, err := s.fileSome(ctx, f, size)
	return err
}

// nowhere is the time of a conversation before it is created.
const nowhere = -1

// file adds to a batch the changes that move a conversation from one time to another in
// the lists by workspace and agent. The batch must fail if there is another save
// meanwhile. After a conflict for which outdated returns true, the rest of the batch must
// be tried again.
func (s *Store) file(ctx context.Context, rec *stetv1.ConversationRecord, from, to int64, b *kv.Batch) error {
	if rec.GetWorkspace() == "" && rec.GetAgent() == "" || from != nowhere && keyspace.Span(from) == keyspace.Span(to) {
		return nil
	}
	f, err := s.makeFilters(ctx)
	if err != nil || f == nil {
		return err
	}
	b.Expect = append(slices.Clip(b.Expect), kv.Expect{Key: filtersKey, Version: f.version})
	if from != nowhere {
		b.Delete = append(slices.Clip(b.Delete), f.keys(rec, from)...)
	}
	b.Set = slices.Clip(b.Set)
	for _, key := range f.keys(rec, to) {
		b.Set = append(b.Set, kv.Set{Key: key})
	}
	return nil
}

// outdated reports whether a commit failed because the row with the salt was replaced, or
// filled further, since it was read for file.
func (s *Store) outdated(err error) bool {
	var conflict *kv.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != filtersKey {
		return false
	}
	s.filters.Store(nil)
	return true
}

// commitFiled commits a batch that creates or changes a conversation, together with the
// changes of file.
func (s *Store) commitFiled(ctx context.Context, rec *stetv1.ConversationRecord, from, to int64, b *kv.Batch, commit Commit) error {
	for range attempts {
		whole := *b
		if err := s.file(ctx, rec, from, to, &whole); err != nil {
			return err
		}
		if err := commit(ctx, &whole); !s.outdated(err) {
			return err
		}
	}
	return kv.ErrConflict
}

// commitNew commits the batch that creates a conversation, and lists it.
func (s *Store) commitNew(ctx context.Context, rec *stetv1.ConversationRecord, b *kv.Batch, commit Commit) error {
	return s.commitFiled(ctx, rec, nowhere, rec.GetCreatedAtMs(), b, commit)
}

// refiled adds to a batch the changes that move a conversation to another workspace or
// agent.
func (s *Store) refiled(ctx context.Context, before, after *stetv1.ConversationRecord, b *kv.Batch) error {
	if before.GetWorkspace() == after.GetWorkspace() && before.GetAgent() == after.GetAgent() {
		return nil
	}
	f, err := s.readFilters(ctx)
	if err != nil || f == nil {
		return err
	}
	last, err := s.lastSave(ctx, before.GetId())
	if err != nil {
		return err
	}
	at := infoOf(before, last).Updated.UnixMilli()
	// A save meanwhile would move it.
	b.Expect = append(b.Expect, kv.Expect{Key: filtersKey, Version: f.version}, kv.Expect{Key: keyspace.Save(before.GetId(), last.Seq+1)})
	b.Delete = append(b.Delete, f.unfiled(before, at)...)
	for _, key := range f.keys(after, at) {
		b.Set = append(b.Set, kv.Set{Key: key})
	}
	return nil
}

// filedAt returns the keys of the rows that list a conversation under a workspace or
// agent, and what a commit that removes them must expect. If its record or its time is
// unreadable, it searches all of them.
func (s *Store) filedAt(ctx context.Context, id string) ([]string, []kv.Expect, error) {
	rec, _, err := s.record(ctx, id)
	var last Save
	if err == nil {
		last, err = s.lastSave(ctx, id)
	}
	if err == nil {
		return s.filedBy(ctx, rec, infoOf(rec, last).Updated.UnixMilli())
	}
	if !Damaged(err) && !errors.Is(err, ErrNotFound) {
		return nil, nil, err
	}
	keys, err := s.keysOf(ctx, keyspace.AllConversationsOf(), id)
	return keys, nil, err
}

// filedBy is filedAt for a conversation that can be read. Another process may be about to
// make the row with the salt, and to list the conversation: the commit must then fail.
func (s *Store) filedBy(ctx context.Context, rec *stetv1.ConversationRecord, unixMS int64) ([]string, []kv.Expect, error) {
	if rec.GetWorkspace() == "" && rec.GetAgent() == "" {
		return nil, nil, nil
	}
	f, err := s.loadFilters(ctx)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, []kv.Expect{{Key: filtersKey}}, nil
	case Damaged(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return f.unfiled(rec, unixMS), []kv.Expect{{Key: filtersKey, Version: f.version}}, nil
}

// Filed returns the keys of the rows that must list a conversation besides its place in
// the order by time, for a check.
func (s *Store) Filed(ctx context.Context, info Info) ([]string, error) {
	f, err := s.readFilters(ctx)
	return f.filed(info), err
}

// filed returns the keys under which a conversation must be listed. Until all
// conversations are listed, only those that are already done have keys.
func (f *filters) filed(info Info) []string {
	if f == nil || !f.built && keyspace.Escape(info.ID) > keyspace.Escape(f.done) {
		return nil
	}
	return f.keys(&stetv1.ConversationRecord{Id: info.ID, Workspace: info.Workspace, Agent: info.Agent}, info.Updated.UnixMilli())
}
