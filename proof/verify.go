package proof

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"hash"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// VerifyOptions configure Verify; nil gives the defaults.
type VerifyOptions struct {
	// Key is the key that must have signed the proof. Without it any key is accepted,
	// and the result names it.
	Key ed25519.PublicKey
}

// maxTrees limits the bytes of directory nodes that a result keeps.
const maxTrees = 1 << 30

// signed returns the bytes that are signed.
func signed(sum hash.Hash) []byte { return sum.Sum([]byte(signedPrefix)) }

// Verify checks a proof: the signature, the chain of the log, the roots of the trees,
// and that every blob is one that a row or an earlier blob names. It returns what the
// proof shows. Its errors wrap ErrBroken, ErrNewer or ErrOtherKey, unless r fails.
func Verify(r io.Reader, opts *VerifyOptions) (*Result, error) {
	if opts == nil {
		opts = &VerifyOptions{}
	}
	in, err := newScanner(r)
	if err != nil {
		return nil, err
	}
	v := &verifier{in: in, named: newFrontier(), result: &Result{nodes: make(map[blob.ID][]byte)}}
	for _, part := range []func() error{v.head, v.log, v.groups, v.blobs, v.sign} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	if opts.Key != nil && !opts.Key.Equal(v.result.Key) {
		return nil, otherKey(v.result.Key, opts.Key)
	}
	if err := v.complete(); err != nil {
		return nil, err
	}
	return v.result, nil
}

// verifier reads one proof.
type verifier struct {
	in     *scanner
	head1  head
	named  *frontier
	trees  int // bytes of nodes
	result *Result
}

func (v *verifier) head() error {
	raw, err := v.in.raw()
	if err != nil {
		return err
	}
	if raw == nil {
		return broken("it is cut off after the first line")
	}
	var any struct {
		Format  string
		Version int
	}
	if json.Unmarshal(raw, &any) != nil || any.Format != formatName {
		return broken("the first line is not that of a proof")
	}
	if any.Version > formatVersion {
		return newer(any.Version)
	}
	if err := v.in.decode(raw, &v.head1); err != nil {
		return err
	}
	h := v.head1
	at, err := time.Parse(time.RFC3339Nano, h.Time)
	switch {
	case h.Version != formatVersion:
		return broken("version %d", h.Version)
	case err != nil:
		return broken("%q is not a time", h.Time)
	case (h.Conversation == "") == (h.Checkpoint == ""):
		return broken("it must be about a conversation or a checkpoint")
	}
	res := v.result
	res.Time, res.Conversation, res.Checkpoint, res.Contents = at, h.Conversation, h.Checkpoint, h.Contents
	res.LogEntries, res.LogLink, res.Groups, res.Root = h.Log.Entries, h.Log.Link, h.Groups, h.Root
	return nil
}

// log checks that the entries of the log lead to its end.
func (v *verifier) log() error {
	l, err := v.in.look()
	if err != nil || l == nil || l.After == nil {
		return err
	}
	if l.Link == nil {
		return broken("line %d: the link is missing", v.in.read)
	}
	v.in.take()
	seq, link := *l.After, *l.Link
	for seq < v.head1.Log.Entries {
		l, err := v.in.look()
		if err != nil {
			return err
		}
		seq++
		var digest blob.ID
		switch {
		case l != nil && l.Digest != nil:
			digest = *l.Digest
		case l != nil && l.Key == keyspace.Operation(seq):
			if digest, err = v.entry(kv.Row{Key: l.Key, Value: l.Value}, link); err != nil {
				return err
			}
		default:
			return broken("entry %d of the log is missing", seq)
		}
		v.in.take()
		link = checkpoint.NextLink(link, digest)
	}
	if link != v.head1.Log.Link || seq != v.head1.Log.Entries {
		return broken("the log of operations does not lead to its end")
	}
	return nil
}

// entry takes an entry of the log that is shown.
func (v *verifier) entry(row kv.Row, link blob.ID) (digest blob.ID, err error) {
	var rec stetv1.OperationRecord
	if err := proto.Unmarshal(row.Value, &rec); err != nil {
		return digest, broken("row %q: %v", row.Key, err)
	}
	if len(rec.Chain) > 0 && !bytes.Equal(rec.Chain, link[:]) {
		return digest, broken("row %q: the entries before it are others", row.Key)
	}
	return checkpoint.Digest(row.Value, rec.Original), v.row(row)
}

// groups computes the root of the store.
func (v *verifier) groups() error {
	root, err := graft(v.head1.Groups, v.group, v.hidden)
	if err != nil {
		return err
	}
	if root != v.head1.Root {
		return broken("the groups do not give the root")
	}
	return nil
}

func (v *verifier) hidden(n uint64) (blob.ID, bool, error) {
	l, err := v.in.look()
	if err != nil || l == nil || l.Hidden != n || l.Hash == nil {
		return blob.ID{}, false, err
	}
	v.in.take()
	return *l.Hash, true, nil
}

func (v *verifier) group() (blob.ID, error) {
	l, err := v.in.look()
	if err != nil {
		return blob.ID{}, err
	}
	if l == nil || l.Group == "" {
		return blob.ID{}, broken("line %d: a group is missing", v.in.read)
	}
	v.in.take()
	if v.result.Group != "" {
		return blob.ID{}, broken("line %d: a second group", v.in.read)
	}
	v.result.Group = l.Group
	root, err := graft(l.Rows, v.leaf, v.hidden)
	return groupHash(l.Group, l.Rows, root), err
}

func (v *verifier) leaf() (blob.ID, error) {
	l, err := v.in.look()
	if err != nil {
		return blob.ID{}, err
	}
	if l == nil || l.Key == "" {
		return blob.ID{}, broken("line %d: a row is missing", v.in.read)
	}
	v.in.take()
	return rowHash(l.Key, l.Value), v.row(kv.Row{Key: l.Key, Value: l.Value})
}

// row takes the content of a row and what it names.
func (v *verifier) row(row kv.Row) error {
	if err := v.named.row(row); err != nil {
		return broken("%v", err)
	}
	return v.result.add(row)
}

// blobs checks that every blob was named before.
func (v *verifier) blobs() error {
	done := make(map[blob.ID]bool)
	for {
		l, err := v.in.look()
		if err != nil || l == nil {
			v.result.left(v.named, done)
			return err
		}
		v.in.take()
		var id blob.ID
		switch {
		case l.Blob != nil:
			id = blob.Sum(*l.Blob)
		case l.Gone != nil:
			id = *l.Gone
		default:
			return broken("line %d is not expected", v.in.read)
		}
		k, ok := v.named.kinds[id]
		if !ok || done[id] || k.form != node && !v.head1.Contents {
			return broken("line %d: nothing before names blob %s", v.in.read, id)
		}
		done[id] = true
		if l.Gone != nil {
			v.result.Gone = append(v.result.Gone, id)
			continue
		}
		if err := v.named.blob(k, *l.Blob); err != nil {
			return broken("blob %s: %v", id, err)
		}
		v.result.Blobs++
		if k.form == node {
			if v.trees += len(*l.Blob); v.trees > maxTrees {
				return broken("its trees take more than %d bytes", maxTrees)
			}
			v.result.nodes[id] = *l.Blob
		}
	}
}

// sign checks the last line.
func (v *verifier) sign() error {
	var e end
	if err := v.in.decode(v.in.last, &e); err != nil {
		return broken("it is cut off: the last line is not a signature")
	}
	same, err := encode(e)
	if err != nil || !bytes.Equal(same, v.in.last) {
		return broken("the last line is not written as it should be")
	}
	key, err := ParsePublic(e.Key)
	if err != nil || FormatPublic(key) != e.Key {
		return broken("the last line has no public key")
	}
	if !ed25519.Verify(key, signed(v.in.sum), e.Signature) {
		return broken("the signature does not match: something was changed")
	}
	v.result.Key = key
	return nil
}

// complete checks that the proof has the subject that it claims, with everything that
// belongs to it.
func (v *verifier) complete() error {
	res := v.result
	switch {
	case res.Checkpoint != "" && (len(res.Checkpoints) != 1 || res.Checkpoints[0].ID != res.Checkpoint):
		return broken("checkpoint %s is not in it", res.Checkpoint)
	case res.Conversation != "" && res.Group != conversationGroup(res.Conversation):
		return broken("conversation %s is not in it", res.Conversation)
	case res.missing > 0:
		return broken("%d blobs are missing", res.missing)
	}
	return nil
}
