package thread

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Key names a frame. The namespace may be empty.
type Key struct{ Thread, Namespace, ID string }

// String separates the parts with colons.
func (k Key) String() string { return k.Thread + ":" + k.Namespace + ":" + k.ID }

// check rejects an invalid key of a frame.
func (k Key) check() error {
	if err := checkID("thread", k.Thread); err != nil {
		return err
	}
	if k.Namespace != "" {
		if err := checkID("namespace", k.Namespace); err != nil {
			return err
		}
	}
	return checkID("frame", k.ID)
}

func checkID(what, id string) error {
	if err := keyspace.CheckID(id); err != nil {
		return invalid("%s id %v", what, err)
	}
	return nil
}

// keyOf is the inverse of keyspace.Frame.
func keyOf(key string) (Key, bool) {
	parts := keyspace.Parts(key)
	if len(parts) != 5 {
		return Key{}, false
	}
	k := Key{Thread: parts[2], Namespace: parts[3], ID: parts[4]}
	return k, k.check() == nil && keyspace.Frame(k.Thread, k.Namespace, k.ID) == key
}

// Value is a serialised value.
type Value struct {
	// Type is the name of the serialisation.
	Type string
	// Data is the content. If it is nil and Blob is set, that blob is the content.
	Data []byte
	// Blob is the id of a stored blob. In a frame that was read it is the blob that has
	// the content, or zero if that is inside the row.
	Blob blob.ID

	size int64 // of the blob; 0 if unknown
}

// Channel is the value of a channel at a version.
type Channel struct {
	Version string
	Value
}

// Write is what a task wrote to a channel on top of a frame.
type Write struct {
	Task string
	// Path is the place of the task in its graph.
	Path string
	// Index is the place among the writes of the task. A write with a negative index
	// replaces an earlier one; any other is ignored if one exists, so that a task can be
	// repeated.
	Index   int32
	Channel string
	Value
}

// NewFrame is a frame to store.
type NewFrame struct {
	Key
	// Parent is the id of the frame that this one continues, in the same namespace;
	// empty for a first one.
	Parent string
	// Metadata is a JSON object; nil means an empty one.
	Metadata []byte
	// Body is everything but the values of channels.
	Body Value
	// Versions are the versions of all channels that have one.
	Versions map[string]string
	// Values are the new values. A channel without one keeps the parent's value if the
	// versions are equal; otherwise it has none.
	Values map[string]Value
}

// Frame is a stored frame.
type Frame struct {
	Key
	Parent   string
	Created  time.Time
	Metadata []byte
	Body     Value
	Channels map[string]Channel
	// Writes are ordered by task and index.
	Writes []Write
}

// Limits of a frame, so that its row fits into every store.
const (
	maxChannels = 4096
	maxMetadata = 64 << 10
	maxName     = 256 // of channels, versions and types
)

// check rejects a frame that cannot be stored or read back.
func (f *NewFrame) check() error {
	if err := f.Key.check(); err != nil {
		return err
	}
	if f.Parent != "" {
		if err := checkID("parent", f.Parent); err != nil {
			return err
		}
	}
	if f.Parent == f.ID {
		return invalid("frame %s is its own parent", f.Key)
	}
	if len(f.Versions) > maxChannels {
		return invalid("%d channels; the limit is %d", len(f.Versions), maxChannels)
	}
	for name, version := range f.Versions {
		if len(name) > maxName || len(version) > maxName {
			return invalid("the name or version of channel %.40q has more than %d bytes", name, maxName)
		}
	}
	for name, value := range f.Values {
		if _, ok := f.Versions[name]; !ok {
			return invalid("channel %.40q has a value and no version", name)
		}
		if len(value.Type) > maxName {
			return invalid("the type of channel %.40q has more than %d bytes", name, maxName)
		}
	}
	return checkObject(f.Metadata)
}

// checkObject rejects metadata that is not a JSON object.
func checkObject(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if len(data) > maxMetadata {
		return invalid("%d bytes of metadata; the limit is %d", len(data), maxMetadata)
	}
	if _, err := object(data); err != nil {
		return invalid("metadata is not a JSON object: %v", err)
	}
	return nil
}

// object parses a JSON object without its values.
func object(data []byte) (map[string]json.RawMessage, error) {
	fields := make(map[string]json.RawMessage)
	if len(data) == 0 {
		return fields, nil
	}
	err := json.Unmarshal(data, &fields)
	return fields, err
}

// filterOf parses a filter. It returns the canonical form of its values, so that a list
// makes it once and not for each frame.
func filterOf(data []byte) (map[string][]byte, error) {
	if len(data) > maxMetadata { // no metadata is that long
		return nil, invalid("%d bytes of a filter; the limit is %d", len(data), maxMetadata)
	}
	fields, err := object(data)
	if err != nil {
		return nil, invalid("the filter is not a JSON object: %v", err)
	}
	filter := make(map[string][]byte, len(fields))
	for name, value := range fields {
		if filter[name], err = canonical(value); err != nil {
			return nil, invalid("the filter is not a JSON object: %v", err)
		}
	}
	return filter, nil
}

// matches reports whether metadata has all fields of a filter with equal values.
func matches(metadata []byte, filter map[string][]byte) bool {
	if len(filter) == 0 {
		return true
	}
	have, err := object(metadata)
	if err != nil {
		return false
	}
	for name, want := range filter {
		got, ok := have[name]
		if !ok {
			return false
		}
		if bytes.Equal(got, want) {
			continue
		}
		if form, err := canonical(got); err != nil || !bytes.Equal(form, want) {
			return false
		}
	}
	return true
}

// canonical encodes a value so that equal ones are the same bytes, regardless of the
// order of their fields and the spelling of their strings.
func canonical(data json.RawMessage) ([]byte, error) {
	var value any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // large numbers stay what they are
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// runOf returns the run that made a frame, if its metadata names one.
func runOf(metadata []byte) string {
	var of struct {
		RunID string `json:"run_id"`
	}
	if json.Unmarshal(metadata, &of) != nil {
		return ""
	}
	return of.RunID
}

// before is the part of a range with ids less than a given one.
func before(in kv.Range, thread, namespace, id string) kv.Range {
	if id != "" {
		in.End = min(in.End, keyspace.Frame(thread, namespace, id))
	}
	return in
}

// later orders keys: greater ids first, then by thread and namespace.
func later(a, b Key) int {
	if c := strings.Compare(b.ID, a.ID); c != 0 {
		return c
	}
	if c := strings.Compare(a.Thread, b.Thread); c != 0 {
		return c
	}
	return strings.Compare(a.Namespace, b.Namespace)
}
