package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/fault"
)

// errCrowded says that no further store can be opened now.
var errCrowded = fault.Named(fault.Busy, "too-many-tenants", "too many tenants are busy at the moment; retry in a few seconds")

// site is the open store of a tenant with its handlers. It has no access to other
// stores.
type site struct {
	tenant  string
	opened  chan struct{} // closed when db and err are set
	closed  chan struct{} // closed when the store is
	db      *stet.DB
	handler http.Handler
	where   *places // of its workspaces
	err     error

	// Guarded by pool.mu.
	users   int
	closing bool
	idle    *time.Timer // closes it; nil while it has users
	since   time.Time   // when the last user left
}

// pool keeps the stores of active tenants open, and a few more.
type pool struct {
	open   func(ctx context.Context, s *site) error // sets all but err
	max    int
	keep   time.Duration
	logger *slog.Logger
	count  func(delta int) // of open stores

	mu    sync.Mutex // guards sites, ended and what site says
	sites map[string]*site
	ended bool
}

// enter returns the site of a tenant, opening its store if needed. The caller calls
// leave.
func (p *pool) enter(ctx context.Context, tenant string) (s *site, leave func(), err error) {
	for {
		s, fresh, wait, err := p.find(tenant)
		if err != nil {
			return nil, nil, err
		}
		if wait != nil { // the store is being closed
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
		if fresh {
			// Others wait for it too, so it must not depend on this call's context.
			go p.start(context.WithoutCancel(ctx), s)
		}
		select {
		case <-s.opened:
		case <-ctx.Done():
			p.leave(s)
			return nil, nil, ctx.Err()
		}
		if s.err != nil {
			p.leave(s)
			return nil, nil, s.err
		}
		return s, sync.OnceFunc(func() { p.leave(s) }), nil
	}
}

// find counts a user of a tenant's site, or returns what to wait for.
func (p *pool) find(tenant string) (s *site, fresh bool, wait <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, false, nil, http.ErrServerClosed
	}
	if s := p.sites[tenant]; s != nil {
		if s.closing {
			return nil, false, s.closed, nil
		}
		s.users++
		if s.idle != nil {
			s.idle.Stop()
			s.idle = nil
		}
		return s, false, nil, nil
	}
	if len(p.sites) >= p.max {
		old := p.oldestLocked()
		if old == nil {
			return nil, false, nil, errCrowded
		}
		if !old.closing {
			p.closeLocked(old)
		}
		return nil, false, old.closed, nil
	}
	s = &site{tenant: tenant, opened: make(chan struct{}), closed: make(chan struct{}), users: 1}
	p.sites[tenant] = s
	return s, true, nil, nil
}

// oldestLocked returns the site that has had no users for the longest time,
// preferably one that is being closed.
func (p *pool) oldestLocked() *site {
	var oldest *site
	for _, s := range p.sites {
		if s.closing {
			return s
		}
		if s.users == 0 && (oldest == nil || s.since.Before(oldest.since)) {
			oldest = s
		}
	}
	return oldest
}

func (p *pool) start(ctx context.Context, s *site) {
	if s.err = p.open(ctx, s); s.err == nil {
		p.count(1)
	} else {
		s.err = fmt.Errorf("open the tenant's store: %w", s.err)
	}
	close(s.opened)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.err != nil && s.users == 0 && !s.closing { // no caller waited for it: the next one tries again
		p.closeLocked(s)
	}
}

func (p *pool) leave(s *site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	if s.users > 0 || s.closing {
		return
	}
	s.since = time.Now()
	select {
	case <-s.opened:
	default: // all users left before it was open
		s.idle = time.AfterFunc(p.keep, func() { p.expire(s) })
		return
	}
	if s.err != nil { // the next one tries again
		p.closeLocked(s)
		return
	}
	s.idle = time.AfterFunc(p.keep, func() { p.expire(s) })
}

// expire closes an idle site.
func (p *pool) expire(s *site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users == 0 && !s.closing && s.idle != nil {
		p.closeLocked(s)
	}
}

// closeLocked closes a site that has no users. New users wait until it is closed.
func (p *pool) closeLocked(s *site) {
	s.closing = true
	if s.idle != nil {
		s.idle.Stop()
	}
	go func() {
		<-s.opened
		if err := s.close(); err != nil {
			p.logger.Error("close the store of a tenant", slog.String("tenant", s.tenant), slog.Any("error", err))
		}
		if s.err == nil {
			p.count(-1)
		}
		p.mu.Lock()
		delete(p.sites, s.tenant)
		p.mu.Unlock()
		close(s.closed)
	}()
}

func (s *site) close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// end closes all sites. Running calls lose their store.
func (p *pool) end() {
	p.mu.Lock()
	p.ended = true
	var open []*site
	for _, s := range p.sites {
		if !s.closing {
			p.closeLocked(s)
		}
		open = append(open, s)
	}
	p.mu.Unlock()
	for _, s := range open {
		<-s.closed
	}
}
