package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is the time between two attempts to take a lock that another process
// holds.
const lockRetry = 5 * time.Millisecond

// lock gives the caller exclusive use of the workspace, in this process and in others
// that share IndexDir.
func (s *Service) lock(ctx context.Context, id string) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, s.opts.LockWait)
	defer cancel()
	token := s.token(id)
	select {
	case <-token:
	case <-wait.Done():
		return nil, lockFailed(ctx, nil, ErrBusy)
	}
	release := func() { token <- struct{}{} }
	if s.opts.IndexDir == "" {
		return release, nil
	}
	if err := os.MkdirAll(s.opts.IndexDir, 0o700); err != nil {
		release()
		return nil, fmt.Errorf("lock workspace: %w", err)
	}
	path := s.file(id, ".lock")
	file := flock.New(path)
	if ok, err := file.TryLockContext(wait, lockRetry); !ok {
		release()
		return nil, lockFailed(ctx, err, busyBy(path))
	}
	erase := s.sign(path)
	return func() {
		erase()
		// The lock ends with the descriptor, even if close fails.
		_ = file.Close()
		release()
	}, nil
}

// lockFailed explains err, a failure to get a lock in time.
func lockFailed(ctx context.Context, err, busy error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("lock workspace: %w", err)
	}
	return busy
}

func (s *Service) token(id string) chan struct{} {
	if s.of != nil {
		return s.of.token(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token, ok := s.locks[id]
	if !ok {
		token = make(chan struct{}, 1)
		token <- struct{}{}
		s.locks[id] = token
	}
	return token
}
