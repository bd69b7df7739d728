package s3api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HeadBucket fails if the bucket cannot be used. Its error has no message, because the
// answer has no body.
func (c *Client) HeadBucket(ctx context.Context) error {
	_, err := c.send(ctx, request{method: http.MethodHead})
	return err
}

// CreateBucket makes the bucket.
func (c *Client) CreateBucket(ctx context.Context) error {
	_, err := c.send(ctx, request{method: http.MethodPut})
	return err
}

// Query says what List lists.
type Query struct {
	Prefix string
	// After is the key to begin after, Token that of the answer before.
	After, Token string
	// Max limits the number of objects. Zero leaves it to the service.
	Max int
}

// Listing is a part of a listing.
type Listing struct {
	Entries []Entry
	// More says that there are more objects, Token how to ask for them.
	More  bool
	Token string
}

// Entry is an object in a listing.
type Entry struct {
	Key  string
	Size int64
	Time time.Time
}

// List returns objects in the order of their keys.
func (c *Client) List(ctx context.Context, q Query) (*Listing, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {q.Prefix}}
	if q.After != "" {
		query.Set("start-after", q.After)
	}
	if q.Token != "" {
		query.Set("continuation-token", q.Token)
	}
	if q.Max > 0 {
		query.Set("max-keys", strconv.Itoa(q.Max))
	}
	answer, err := c.ask(ctx, request{method: http.MethodGet, query: query}, "ListBucketResult")
	if err != nil {
		return nil, err
	}
	l := &Listing{More: isTrue(answer.find("IsTruncated")), Token: answer.find("NextContinuationToken")}
	for _, e := range answer.inner {
		if !e.is("Contents") {
			continue
		}
		entry := Entry{Key: e.find("Key")}
		if entry.Size, err = number(e.find("Size")); err != nil {
			return nil, fmt.Errorf("cannot read the size of %q in a listing: %w", entry.Key, err)
		}
		if entry.Time, err = instant(e.find("LastModified")); err != nil {
			return nil, fmt.Errorf("cannot read the time of %q in a listing: %w", entry.Key, err)
		}
		l.Entries = append(l.Entries, entry)
	}
	return l, nil
}

func isTrue(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }

// number reads a number that may be left out.
func number(text string) (int64, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// instant reads a time that may be left out.
func instant(text string) (time.Time, error) {
	if text = strings.TrimSpace(text); text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}
