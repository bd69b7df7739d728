package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// agentScript is what an agent does in its copy: it changes ten files.
const agentScript = `for i in 0 1 2 3 4 5 6 7 8 9; do echo more >> d0$i/f000$i.txt; done`

// tryShop is a workspace of 1,000 files, with a store, that is also a repository of git.
type tryShop struct {
	b                *testing.B
	stet, home, shop string
}

func newTryShop(b *testing.B) *tryShop {
	b.Helper()
	home := b.TempDir()
	s := &tryShop{b: b, stet: buildProgram(b, "../../cmd/stet"), home: home, shop: filepath.Join(home, "shop")}
	for i := range 1000 {
		path := filepath.Join(s.shop, fmt.Sprintf("d%02d", i%20), fmt.Sprintf("f%04d.txt", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte(fmt.Sprintf("line of file %d\n", i)), 100), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	s.run("git", "init", "-q")
	s.commit(s.shop)
	s.run(s.stet, "checkpoint")
	return s
}

// run returns what a program prints, and how long it took.
func (s *tryShop) run(args ...string) ([]byte, time.Duration) {
	s.b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.shop
	cmd.Env = append(os.Environ(), "HOME="+s.home, "XDG_CACHE_HOME="+s.home, "STET_STORE="+filepath.Join(s.home, "store"),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		s.b.Fatalf("%v: %v\n%s", args, err, &complaint)
	}
	return out, time.Since(began)
}

func (s *tryShop) commit(dir string) time.Duration {
	s.b.Helper()
	_, add := s.run("git", "-C", dir, "add", "-A")
	_, commit := s.run("git", "-C", dir, "commit", "-qm", "all")
	return add + commit
}

// attempt runs the agent with stet try and returns the branch.
func (s *tryShop) attempt() (string, time.Duration) {
	s.b.Helper()
	out, took := s.run(s.stet, "try", "1", "--json", "--", "sh", "-c", agentScript)
	var tried struct {
		Attempts []struct{ Branch string }
	}
	if err := json.Unmarshal(out, &tried); err != nil || len(tried.Attempts) != 1 {
		s.b.Fatalf("%v: %s", err, out)
	}
	return tried.Attempts[0].Branch, took
}

// worktree runs the agent in a work tree of git and commits what it did.
func (s *tryShop) worktree(branch string) time.Duration {
	s.b.Helper()
	at := filepath.Join(s.home, branch)
	_, made := s.run("git", "worktree", "add", "-q", "-b", branch, at)
	_, ran := s.run("sh", "-c", "cd "+at+" && "+agentScript)
	kept := s.commit(at)
	_, removed := s.run("git", "worktree", "remove", "--force", at)
	return made + ran + kept + removed
}

func (s *tryShop) report(ours, git []time.Duration) {
	slices.Sort(ours)
	slices.Sort(git)
	s.b.ReportMetric(0, "ns/op")
	s.b.ReportMetric(ours[len(ours)/2].Seconds()*1000, "p50-ms")
	s.b.ReportMetric(ours[len(ours)/2].Seconds()/git[len(git)/2].Seconds(), "ours/git")
}

// BenchmarkTry compares an attempt among 1,000 files with a work tree of git, its commit
// included.
func BenchmarkTry(b *testing.B) {
	s := newTryShop(b)
	var ours, git []time.Duration
	for b.Loop() {
		_, took := s.attempt()
		ours = append(ours, took)
		git = append(git, s.worktree(fmt.Sprint("try", len(git))))
	}
	s.report(ours, git)
}

// BenchmarkAdopt compares taking ten files of an attempt, which saves the present first and
// can be undone, with git's checkout of a branch's files.
func BenchmarkAdopt(b *testing.B) {
	s := newTryShop(b)
	branch, _ := s.attempt()
	s.worktree("try")
	var ours, git []time.Duration
	for b.Loop() {
		_, took := s.run(s.stet, "adopt", branch, "-y")
		ours = append(ours, took)
		s.run(s.stet, "undo")
		_, took = s.run("git", "checkout", "-q", "try", "--", ".")
		git = append(git, took)
		s.run("git", "reset", "-q", "--hard")
	}
	s.report(ours, git)
}

// BenchmarkProve compares a proof of a conversation with contents, and checking it, with a
// bundle of git's for the same files, and a check of its repository.
func BenchmarkProve(b *testing.B) {
	s := newTryShop(b)
	branch, _ := s.attempt()
	proof, bundle := filepath.Join(s.home, "proof"), filepath.Join(s.home, "bundle")
	for _, c := range []struct {
		name      string
		ours, git []string
	}{
		{"write", []string{"sh", "-c", s.stet + " prove --with-content " + branch + " > " + proof}, []string{"git", "bundle", "create", "-q", bundle, "--all"}},
		{"verify", []string{s.stet, "verify", proof}, []string{"git", "fsck", "--full"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := &tryShop{b: b, stet: s.stet, home: s.home, shop: s.shop}
			var ours, git []time.Duration
			for b.Loop() {
				_, took := s.run(c.ours...)
				ours = append(ours, took)
				_, took = s.run(c.git...)
				git = append(git, took)
			}
			s.report(ours, git)
		})
	}
}
