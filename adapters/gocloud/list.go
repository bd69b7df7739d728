package stetblob

import (
	"context"
	"fmt"
	"strings"

	"gocloud.dev/blob/driver"

	"github.com/stet-dev/stet/document"
)

const defaultPage = 1000

// last is greater than every other character, so that it ends a directory.
const last = "\U0010FFFF"

func (b *bucket) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	l := &listing{b: b, prefix: opts.Prefix, delimiter: opts.Delimiter, size: opts.PageSize, page: &driver.ListPage{}}
	if l.size == 0 {
		l.size = defaultPage
	}
	after := string(opts.PageToken)
	if l.isDir(after) {
		l.dir, after = after, after+last
	}
	for more := true; more; {
		var err error
		if after, more, err = l.run(ctx, after); err != nil {
			return nil, err
		}
	}
	return l.page, nil
}

// listing collects a page.
type listing struct {
	b                 *bucket
	prefix, delimiter string
	size              int
	dir               string // the last directory
	page              *driver.ListPage
}

// isDir reports whether a page token is a directory: only directories end with the
// delimiter, because an object that does is not listed by itself.
func (l *listing) isDir(token string) bool {
	return l.delimiter != "" && strings.HasSuffix(strings.TrimPrefix(token, l.prefix), l.delimiter)
}

// run lists the keys after one until the page is full or a directory begins; the next
// call continues after that directory.
func (l *listing) run(ctx context.Context, after string) (next string, more bool, err error) {
	q := document.Query{Collection: l.b.collection, Prefix: escape(l.prefix), After: escape(after), NamesOnly: true}
	for doc, err := range l.b.documents.List(ctx, q) {
		if err != nil {
			return "", false, err
		}
		key, err := unescape(doc.Name)
		if err != nil {
			return "", false, err
		}
		dir := l.dirOf(key)
		if dir != "" && dir == l.dir {
			continue
		}
		if len(l.page.Objects) == l.size {
			l.page.NextPageToken = []byte(l.page.Objects[l.size-1].Key)
			return "", false, nil
		}
		if dir != "" {
			l.dir = dir
			l.page.Objects = append(l.page.Objects, &driver.ListObject{Key: dir, IsDir: true})
			return dir + last, true, nil
		}
		attrs, err := attributesOf(doc)
		if err != nil {
			return "", false, err
		}
		l.page.Objects = append(l.page.Objects, &driver.ListObject{Key: key, ModTime: doc.Changed, Size: doc.Size, MD5: attrs.MD5, AsFunc: as(doc)})
	}
	return "", false, nil
}

// dirOf returns the directory of a key below the prefix, or "".
func (l *listing) dirOf(key string) string {
	if l.delimiter == "" {
		return ""
	}
	before, _, found := strings.Cut(key[len(l.prefix):], l.delimiter)
	if !found {
		return ""
	}
	return l.prefix + before + l.delimiter
}

// escape returns the name of a document for a key: names cannot have control
// characters. It keeps the order of keys: characters up to a space are escaped with a
// space, and '~' and the character after it with '~'.
func escape(key string) string {
	if !strings.ContainsFunc(key, special) {
		return key
	}
	var out strings.Builder
	for _, r := range key {
		switch {
		case r <= ' ':
			fmt.Fprintf(&out, " %02x", r)
		case r == '~' || r == 0x7f:
			fmt.Fprintf(&out, "~%02x", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func special(r rune) bool { return r <= ' ' || r == '~' || r == 0x7f }

// unescape is the inverse of escape.
func unescape(name string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != ' ' && name[i] != '~' {
			out.WriteByte(name[i])
			continue
		}
		var c byte
		if _, err := fmt.Sscanf(name[i+1:min(i+3, len(name))], "%02x", &c); err != nil || len(name) < i+3 {
			return "", fmt.Errorf("document %q is not an object of a bucket", name)
		}
		out.WriteByte(c)
		i += 2
	}
	return out.String(), nil
}
