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

// A conversation is listed under its workspace and under its agent, so that a list of
// those reads nothing else. These rows come and go with its record; saves do not touch
// them, and the order by time is that of all conversations. Their keys hold sums with a
// random salt: names can be guessed, and the keys of an encrypted store are readable.

// filtersKey is the row with the salt. It also says how far a store that an earlier
// release filled was read.
var filtersKey = keyspace.Setting("filters")

// filters is the content of that row.
type filters struct {
	salt    []byte
	built   bool   // every conversation is listed
	done    string // otherwise: conversations up to this id are, and newly created ones
	version uint64 // of the row
}

const saltSize = 16

func (f *filters) row() []byte {
	state := "built"
	if !f.built {
		state = "after " + keyspace.Escape(f.done)
	}
	return []byte(hex.EncodeToString(f.salt) + " " + state)
}

// decodeFilters reads the row.
func decodeFilters(row kv.Row) (*filters, error) {
	text, state, _ := strings.Cut(string(row.Value), " ")
	salt, err := hex.DecodeString(text)
	done, building := strings.CutPrefix(state, "after ")
	if err != nil || len(salt) != saltSize || !building && state != "built" {
		return nil, corrupt(row, "it is not a salt and a state")
	}
	f := &filters{salt: salt, built: !building, version: row.Version}
	if building {
		f.done = keyspace.Unescape(done)
	}
	return f, nil
}

// sum is the part of a key that stands for a value of a kind.
func (f *filters) sum(kind, value string) string {
	h := hmac.New(sha256.New, f.salt)
	h.Write([]byte(kind + "\x00" + value))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// sums returns those of a workspace and of an agent, without empty ones.
func (f *filters) sums(workspace, agent string) (sums []string) {
	if workspace != "" {
		sums = append(sums, f.sum("workspace", workspace))
	}
	if agent != "" {
		sums = append(sums, f.sum("agent", agent))
	}
	return sums
}

// keys returns the keys of the rows that list a conversation.
func (f *filters) keys(rec *stetv1.ConversationRecord) []string {
	keys := f.sums(rec.GetWorkspace(), rec.GetAgent())
	for i, sum := range keys {
		keys[i] = keyspace.ConversationOf(sum, rec.GetId())
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

// readFilters returns the row, or nil where there is none or it is damaged: lists are
// then read as a whole.
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
	for range attempts {
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
		if err := s.addFilters(ctx); err != nil && !errors.Is(err, kv.ErrConflict) {
			return nil, fmt.Errorf("write filters: %w", err)
		}
	}
	return nil, fmt.Errorf("write filters: %w", kv.ErrConflict)
}

// addFilters makes the row. Some conversations of an earlier release are listed at once,
// many by FileAll.
func (s *Store) addFilters(ctx context.Context) error {
	f := &filters{salt: make([]byte, saltSize)}
	rand.Read(f.salt) // never fails
	_, err := s.fileSome(ctx, f)
	return err
}

// commitNew commits the batch that creates a conversation, and lists it.
func (s *Store) commitNew(ctx context.Context, rec *stetv1.ConversationRecord, b *kv.Batch, commit Commit) error {
	if rec.GetWorkspace() == "" && rec.GetAgent() == "" {
		return commit(ctx, b)
	}
	for range attempts {
		f, err := s.makeFilters(ctx)
		if err != nil {
			return err
		}
		if f == nil {
			return commit(ctx, b)
		}
		whole := *b
		whole.Expect = append(slices.Clip(b.Expect), kv.Expect{Key: filtersKey, Version: f.version})
		whole.Set = slices.Clip(b.Set)
		for _, key := range f.keys(rec) {
			whole.Set = append(whole.Set, kv.Set{Key: key})
		}
		err = commit(ctx, &whole)
		var conflict *kv.ConflictError
		if !errors.As(err, &conflict) || conflict.Key != filtersKey {
			return err
		}
		s.filters.CompareAndSwap(f, nil) // it was replaced, or filled further
	}
	return kv.ErrConflict
}

// refiled adds to a batch what moves a conversation to another workspace or agent.
func (s *Store) refiled(ctx context.Context, before, after *stetv1.ConversationRecord, b *kv.Batch) error {
	if before.GetWorkspace() == after.GetWorkspace() && before.GetAgent() == after.GetAgent() {
		return nil
	}
	f, err := s.readFilters(ctx)
	if err != nil || f == nil {
		return err
	}
	b.Expect = append(b.Expect, kv.Expect{Key: filtersKey, Version: f.version})
	b.Delete = append(b.Delete, f.keys(before)...)
	for _, key := range f.keys(after) {
		b.Set = append(b.Set, kv.Set{Key: key})
	}
	return nil
}

// filedAt returns the keys of the rows that list a conversation under something. If its
// record is unreadable, it searches all of them.
func (s *Store) filedAt(ctx context.Context, id string) ([]string, error) {
	rec, _, err := s.record(ctx, id)
	if err == nil {
		f, err := s.readFilters(ctx)
		if err != nil || f == nil {
			return nil, err
		}
		return f.keys(rec), nil
	}
	if !Damaged(err) && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return s.keysOf(ctx, keyspace.AllConversationsOf(), id)
}

// Filed returns the keys of the rows that must list a conversation besides its place in
// the order by time, for a check.
func (s *Store) Filed(ctx context.Context, info Info) ([]string, error) {
	f, err := s.readFilters(ctx)
	if err != nil || f == nil || !f.built && keyspace.Escape(info.ID) > keyspace.Escape(f.done) {
		return nil, err
	}
	return f.keys(&stetv1.ConversationRecord{Id: info.ID, Workspace: info.Workspace, Agent: info.Agent}), nil
}

// Unfiled reports whether FileAll has more to do than the next new conversation does on
// the way.
func (s *Store) Unfiled(ctx context.Context) (bool, error) {
	f, err := s.loadFilters(ctx)
	if err == nil {
		return !f.built, nil
	}
	if Damaged(err) {
		return false, nil // it cannot be done
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return false, err
	}
	n := 0
	for _, err := range s.rows.Scan(ctx, keyspace.Conversations(), kv.ScanOptions{KeysOnly: true, Limit: filePage + 1}) {
		if err != nil {
			return false, fmt.Errorf("read filters: %w", err)
		}
		n++
	}
	return n > filePage, nil
}

// filePage is how many conversations one commit of FileAll lists.
const filePage = 500

// FileAll lists the conversations of an earlier release under their workspaces and
// agents, after which filtered lists need not read all of them. It returns at once where
// that was done. It continues where a killed one ended, beside writers and other
// processes that do the same. progress, if not nil, is called with the number of
// conversations read.
func (s *Store) FileAll(ctx context.Context, progress func(done int)) error {
	done, conflicts := 0, 0
	for {
		s.filters.Store(nil) // read it again
		f, err := s.makeFilters(ctx)
		if err != nil || f == nil || f.built {
			return err
		}
		n, err := s.fileSome(ctx, f)
		if errors.Is(err, kv.ErrConflict) && conflicts < attempts {
			conflicts++
			continue // a writer, or another process that does the same
		}
		if err != nil {
			return fmt.Errorf("list conversations by workspace and agent: %w", err)
		}
		conflicts = 0
		if done += n; progress != nil {
			progress(done)
		}
	}
}

// fileSome lists the next conversations, and writes how far it came. A record that cannot be read belongs nowhere.
func (s *Store) fileSome(ctx context.Context, f *filters) (int, error) {
	b := &kv.Batch{Expect: []kv.Expect{{Key: filtersKey, Version: f.version}}}
	in, n := keyspace.Conversations(), 0
	if f.done != "" {
		in.Start = keyspace.Conversation(f.done) + "\x00"
	} else {
		b.DeleteRange = []kv.Range{keyspace.AllConversationsOf()} // of a salt that was lost
	}
	next := &filters{salt: f.salt, built: true}
	for row, err := range kv.Each(ctx, s.rows, in, false) {
		if err != nil && row.Key == "" {
			return 0, err
		}
		if n == filePage {
			next.built = false
			break
		}
		n++
		next.done = keyspace.Last(row.Key)
		rec := new(stetv1.ConversationRecord)
		if err == nil {
			rec, err = decodeConversation(row)
		}
		if err != nil {
			continue
		}
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		for _, key := range f.keys(rec) {
			b.Set = append(b.Set, kv.Set{Key: key})
		}
	}
	b.Set = append(b.Set, kv.Set{Key: filtersKey, Value: next.row()})
	return n, s.rows.Commit(ctx, b)
}
