package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/objectblob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/private"
	"github.com/stet-dev/stet/mirror"
)

// errPlainCopies says that contents of an encrypted store would be copied to a server
// that is not encrypted.
var errPlainCopies = fault.New(fault.Conflict, "the store is encrypted and the remote is not; set remote.decrypt to allow it")

// copying holds the settings of the remote.
type copying struct {
	flag      bool // --remote was given
	tokenFile string
	plain     bool          // remote.decrypt
	wait      time.Duration // at the end of a command
	silent    bool          // send nothing at the end of this command
}

// isCopyPlace accepts the addresses of servers and buckets.
func isCopyPlace(text string) error {
	if text == "" || isRemote(text) || isBucket(text) {
		return nil
	}
	return fmt.Errorf("invalid address %q; use http(s)://… or s3://…", text)
}

func isBucket(place string) bool { return strings.HasPrefix(place, "s3://") }

// useRemote applies the settings of the remote.
func (a *app) useRemote(all settings) error {
	a.copying.flag = a.remote != ""
	if !a.copying.flag {
		a.remote = all.text("remote.url")
	}
	if err := isCopyPlace(a.remote); err != nil {
		return usage(fmt.Errorf("--remote: %w", err))
	}
	a.copying.tokenFile, a.copying.plain = all.text("remote.token_file"), all.on("remote.decrypt")
	a.copying.wait = time.Duration(all.number("remote.wait_ms")) * time.Millisecond
	return nil
}

// copies returns the place for copies of the blobs in a directory, or nil. It is opened
// when it is first used: a place that cannot be opened fails no command.
func (a *app) copies(dir string) *stet.Remote {
	if a.remote == "" {
		return nil
	}
	if isBucket(a.remote) {
		place := &copyPlace{open: func(ctx context.Context) (blob.Store, error) {
			bucket, err := s3blob.Open(ctx, a.remote, nil)
			if err != nil {
				return nil, err
			}
			return objectblob.New(bucket, "blobs/"), nil
		}}
		remove := func(ctx context.Context, names []blob.ID) error {
			bucket, err := s3blob.Open(ctx, a.remote, nil)
			if err != nil {
				return err
			}
			return objectblob.New(bucket, "blobs/").Remove(ctx, names...)
		}
		return &stet.Remote{Name: a.remote, Blobs: place, Opaque: true, Remove: remove}
	}
	server := &copyServer{app: a, encrypted: fileExists(filepath.Join(dir, stet.KeyringName))}
	place := &copyPlace{open: func(context.Context) (blob.Store, error) {
		c, err := server.dial()
		if err != nil {
			return nil, err
		}
		return c.Blobs(), nil
	}}
	return &stet.Remote{Name: a.remote, Blobs: place, Keep: server.keep, Ready: server.ready, Close: server.close}
}

// copyServer is a server that gets copies.
type copyServer struct {
	app       *app
	encrypted bool // the local store

	mu     sync.Mutex // guards what follows
	client *client.Client
	proven bool // it may be written to
}

func (s *copyServer) dial() (*client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	opts := &client.Options{HTTPClient: impatient()}
	if path := s.app.copying.tokenFile; path != "" {
		data, err := private.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the token of the remote: %w", err)
		}
		opts.Token = strings.TrimSpace(string(data))
	}
	c, err := client.New(s.app.remote, opts)
	if err != nil {
		return nil, err
	}
	if opts.Token != "" && client.Exposed(s.app.remote) {
		fmt.Fprintf(os.Stderr, "stet: %s is on another machine and does not use TLS, so the token can be read on the network; use https\n", s.app.remote)
	}
	s.client = c
	return c, nil
}

// impatient is for a remote that may be away: a command does not wait long for it.
func impatient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second}
	return &http.Client{Transport: transport}
}

// ready asks once whether the content of this store may be written there.
func (s *copyServer) ready(ctx context.Context) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proven || !s.encrypted || s.app.copying.plain {
		return nil
	}
	info, err := c.Store().Info(ctx, &stetv1.StoreInfoRequest{})
	if err != nil {
		return fmt.Errorf("query the remote's store: %w", err)
	}
	if !info.GetEncrypted() {
		return errPlainCopies
	}
	s.proven = true
	return nil
}

func (s *copyServer) keep(ctx context.Context, origin string, ids []blob.ID) ([]blob.ID, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	return c.Blobs().Keep(ctx, origin, ids)
}

func (s *copyServer) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// copyPlace opens a store when it is first used, and again after a failure.
type copyPlace struct {
	open  func(context.Context) (blob.Store, error)
	mu    sync.Mutex // guards store
	store blob.Store
}

var _ blob.Streamer = (*copyPlace)(nil)

func (p *copyPlace) opened(ctx context.Context) (blob.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store != nil {
		return p.store, nil
	}
	store, err := p.open(ctx)
	if err == nil {
		p.store = store
	}
	return store, err
}

func (p *copyPlace) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	store, err := p.opened(ctx)
	if err != nil {
		return nil, err
	}
	return store.Get(ctx, id)
}

func (p *copyPlace) Put(ctx context.Context, blobs ...blob.Blob) error {
	store, err := p.opened(ctx)
	if err != nil {
		return err
	}
	return store.Put(ctx, blobs...)
}

func (p *copyPlace) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	store, err := p.opened(ctx)
	if err != nil {
		return nil, err
	}
	return store.Has(ctx, ids...)
}

func (p *copyPlace) Flush(ctx context.Context) error {
	store, err := p.opened(ctx)
	if err != nil {
		return err
	}
	return store.Flush(ctx)
}

func (p *copyPlace) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	store, err := p.opened(ctx)
	if err != nil {
		return nil, err
	}
	return blob.Open(ctx, store, id)
}

func (p *copyPlace) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	store, err := p.opened(ctx)
	if err != nil {
		return err
	}
	return blob.PutFrom(ctx, store, id, r, size)
}

// sendCopies sends what the remote lacks at the end of a command, for a limited time.
// What cannot be sent waits for a later command: the remote fails no command.
func (a *app) sendCopies(ctx context.Context, db *stet.DB) {
	m := db.Mirror()
	if m == nil || a.copying.silent || ctx.Err() != nil || db.Engine().ReadOnly() {
		return
	}
	a.copying.silent = true // status has sent already
	limited, cancel := context.WithTimeout(ctx, a.copying.wait)
	defer cancel()
	left, err := m.Backlog(limited, 1)
	if err == nil && left.Blobs == 0 {
		return
	}
	if err == nil {
		_, err = m.Send(limited, nil)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	if limited.Err() != nil {
		err = fmt.Errorf("timed out (remote.wait_ms); 'stet flush' sends the rest")
	}
	a.say("%s for %s: %v", waiting(ctx, m), shown(m.Name()), err)
}

// keepSending sends what the remote lacks while a server runs. The result ends it.
func (a *app) keepSending(ctx context.Context, db *stet.DB) (stop func()) {
	m := db.Mirror()
	if m == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// shownBacklog limits how many waiting blobs are counted for people.
const shownBacklog = 1_000_000

// waiting says how much waits.
func waiting(ctx context.Context, m *mirror.Store) string {
	left, err := m.Backlog(ctx, shownBacklog)
	if err != nil {
		return "an unknown number of blobs waiting"
	}
	return backlogText(left)
}

func backlogText(left mirror.Backlog) string {
	more := ""
	if left.More {
		more = "more than "
	}
	return fmt.Sprintf("%s%s (%s) waiting", more, plural(left.Blobs, "blob"), byteSize(left.Bytes))
}

// copiesJSON is what status says about the remote.
type copiesJSON struct {
	URL     string `json:"url"`
	Waiting int64  `json:"waiting"`
	Bytes   int64  `json:"bytes"`
	Error   string `json:"error,omitempty"`
	left    mirror.Backlog
}

// copyStatus sends what it can and returns the rest.
func (a *app) copyStatus(ctx context.Context, db *stet.DB) (*copiesJSON, error) {
	m := db.Mirror()
	if m == nil {
		return nil, nil
	}
	quiet := *a
	quiet.quiet = true // the status says it
	quiet.sendCopies(ctx, db)
	a.copying.silent = true
	left, err := m.Backlog(ctx, shownBacklog)
	if err != nil {
		return nil, err
	}
	value := &copiesJSON{URL: shown(m.Name()), Waiting: left.Blobs, Bytes: left.Bytes, left: left}
	if err := m.Err(); err != nil && left.Blobs > 0 {
		value.Error = err.Error()
	}
	return value, nil
}

func (c *copiesJSON) text() string {
	switch {
	case c.Waiting == 0:
		return c.URL + ", up to date"
	case c.Error != "":
		return c.URL + ", " + backlogText(c.left) + ": " + c.Error
	}
	return c.URL + ", " + backlogText(c.left)
}
