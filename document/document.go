package document

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
)

// Document is a stored document.
type Document struct {
	Name string
	// Version changes with every change of the document and is never reused. Versions
	// can only be compared for equality.
	Version string
	// Changed is when the document last changed. A later change never has an earlier
	// time.
	Changed time.Time
	// Size is the size of the content in bytes.
	Size int64
	// Type is the name of the serialisation that the writer chose.
	Type     string
	Metadata []byte
	// Data is the content. It is nil in a list of names, and if a limited store left the
	// content as a blob.
	Data []byte
	// Blob has the content, or is zero if the row has it.
	Blob blob.ID
}

// New is what a document becomes.
type New struct {
	Type     string
	Metadata []byte
	// Data is the content. If it is nil and Blob is set, that stored blob is the content.
	Data []byte
	Blob blob.ID
	// Size is the size of the blob, if the caller knows it; otherwise the blob is read
	// once.
	Size int64
}

// Expectation is what a change expects of its document; nil expects nothing.
type Expectation *string

// Absent expects that the document does not exist.
var Absent Expectation = new(string)

// At expects that the document has a version.
func At(version string) Expectation { return &version }

// Change is a change of one document. Without Set and Delete it only checks the version.
type Change struct {
	Name   string
	Expect Expectation
	Set    *New
	// Delete removes the document if it exists.
	Delete bool
}

// Batch is a set of changes that are committed together.
type Batch struct {
	Changes []Change
	// DeletePrefixes removes all documents whose names have one of the prefixes, before
	// the changes. An empty prefix means the whole collection.
	DeletePrefixes []string
}

// Limits of documents and of requests.
const (
	MaxName     = 1024
	MaxMetadata = 64 << 10
	MaxType     = 256
	MaxChanges  = 1000
	maxPrefixes = 100
)

func checkCollection(collection string) error {
	if err := keyspace.CheckID(collection); err != nil {
		return invalid("the name of the collection %v", err)
	}
	return nil
}

func checkName(name string) error {
	if name == "" {
		return invalid("a name is empty")
	}
	return checkPrefix(name)
}

// checkPrefix rejects what cannot be the beginning of a name.
func checkPrefix(name string) error {
	switch {
	case len(name) > MaxName:
		return invalid("a name has %d bytes; the limit is %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return invalid("the name %.40q is not UTF-8", name)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return invalid("the name %.40q holds a control character", name)
	}
	return nil
}

// check rejects a batch that cannot be stored or read back.
func (b *Batch) check() error {
	if len(b.Changes) > MaxChanges {
		return invalid("%d changes; the limit is %d", len(b.Changes), MaxChanges)
	}
	if len(b.DeletePrefixes) > maxPrefixes {
		return invalid("%d prefixes; the limit is %d", len(b.DeletePrefixes), maxPrefixes)
	}
	for _, prefix := range b.DeletePrefixes {
		if err := checkPrefix(prefix); err != nil {
			return err
		}
	}
	seen := make(map[string]bool, len(b.Changes))
	for _, c := range b.Changes {
		if err := c.check(); err != nil {
			return err
		}
		if seen[c.Name] {
			return invalid("the name %.40q is there twice", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

func (c *Change) check() error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	switch {
	case c.Set == nil:
		return nil
	case c.Delete:
		return invalid("document %.40q is set and deleted", c.Name)
	case len(c.Set.Type) > MaxType:
		return invalid("the type of document %.40q has %d bytes; the limit is %d", c.Name, len(c.Set.Type), MaxType)
	case !utf8.ValidString(c.Set.Type):
		return invalid("the type of document %.40q is not UTF-8", c.Name)
	case len(c.Set.Metadata) > MaxMetadata:
		return invalid("document %.40q has %d bytes of metadata; the limit is %d", c.Name, len(c.Set.Metadata), MaxMetadata)
	case c.Set.Size < 0:
		return invalid("document %.40q has a negative size", c.Name)
	}
	return nil
}

func formatVersion(v uint64) string { return strconv.FormatUint(v, 36) }
