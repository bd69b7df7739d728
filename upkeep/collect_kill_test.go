package upkeep_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/upkeep"
)

// collectorDir makes the test binary a process that saves, deletes and collects
// in a store until it is killed.
const collectorDir = "STET_TEST_COLLECT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(collectorDir); dir != "" {
		fmt.Fprintln(os.Stderr, churn(context.Background(), dir))
		os.Exit(1)
	}
	if dir := os.Getenv(archiverDir); dir != "" {
		fmt.Fprintln(os.Stderr, archiveAndSave(context.Background(), dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// churn says what it acknowledged: "+id" after a save, "-id" before a deletion.
func churn(ctx context.Context, dir string) error {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	var kept []string
	for i := 0; ; i++ {
		c, err := db.Conversations().Create(ctx, conversation.Info{})
		if err != nil {
			return err
		}
		for turn := range 3 {
			if err := addTurn(ctx, c, fmt.Sprintf("%d %d %s", i, turn, strings.Repeat("words ", rand.IntN(40_000)))); err != nil {
				return err
			}
		}
		fmt.Println("+" + c.ID())
		kept = append(kept, c.ID())
		if len(kept) > 3 {
			fmt.Println("-" + kept[0])
			if err := db.Conversations().Delete(ctx, kept[0], nil); err != nil {
				return err
			}
			kept = kept[1:]
		}
		if _, err := db.Collect(ctx, &upkeep.CollectOptions{Grace: -1}); err != nil {
			return err
		}
	}
}

func addTurn(ctx context.Context, c *conversation.Conversation, text string) error {
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text})
	if err != nil {
		return err
	}
	if err := c.AppendTurn(ctx, turn); err != nil {
		return err
	}
	_, err = c.Save(ctx, nil)
	return err
}

// A collector that is killed at any point has removed nothing that is needed.
func TestKilledCollector(t *testing.T) {
	dir := t.TempDir()
	alive := make(map[string]bool)
	for range testenv.Scale(12, 500) {
		runKilled(t, dir, alive)
		db, err := stet.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range report.Damage {
			t.Errorf("after a kill: %s %s%s: %v", d.Kind, d.ID, d.Key, d.Err)
		}
		for id := range alive {
			if _, err := db.Conversations().Hydrate(t.Context(), id, nil); err != nil {
				t.Errorf("conversation %s was saved and not deleted: %v", id, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
}

// runKilled lets a process churn for a moment and notes what it acknowledged.
func runKilled(t *testing.T, dir string, alive map[string]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), collectorDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	saves := rand.IntN(6)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id := lines.Text()[1:]
		if lines.Text()[0] == '-' {
			delete(alive, id)
			continue
		}
		alive[id] = true
		if saves--; saves < 0 {
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
			cmd.Process.Kill()
			for lines.Scan() { // what it said before it died
				if id := lines.Text()[1:]; lines.Text()[0] == '-' {
					delete(alive, id)
				} else {
					alive[id] = true
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	cmd.Wait()
}
