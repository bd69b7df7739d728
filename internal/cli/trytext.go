package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-dev/stet/internal/attempt"
	"github.com/stet-dev/stet/timeline"
)

type tryJSON struct {
	Schema   string        `json:"schema"`
	Try      string        `json:"try"`
	Attempts []attemptJSON `json:"attempts"`
}

type attemptJSON struct {
	Branch  string `json:"branch"`
	Number  int    `json:"number"`
	Base    string `json:"base"`
	Command string `json:"command"`
	Began   string `json:"began"`
	// Ended is false while it runs, and after its process was killed.
	Ended    bool      `json:"ended"`
	ExitCode int       `json:"exit_code"`
	End      string    `json:"end,omitempty"`
	Score    *float64  `json:"score,omitempty"`
	Millis   int64     `json:"ms"`
	Files    int       `json:"files"`
	Added    int       `json:"added"`
	Removed  int       `json:"removed"`
	Words    string    `json:"words,omitempty"`
	Spent    spentJSON `json:"spent"`
}

// attemptRow is an attempt with what its agent took.
type attemptRow struct {
	attempt.Attempt
	spent timeline.Spent
}

func (t *trying) report(ctx context.Context) error {
	slices.SortFunc(t.all, func(a, b attempt.Attempt) int { return cmp.Compare(a.Number, b.Number) })
	if len(t.all) == 0 {
		return nil
	}
	rows, err := t.app.attemptRows(ctx, t.p, t.all)
	if err != nil {
		return err
	}
	if err := t.app.printTry(t.id, rows); err != nil {
		return err
	}
	if best := attempt.Best(t.all); best >= 0 && t.all[best].Files > 0 {
		t.app.say("to take it: stet adopt %s", t.all[best].ID)
	}
	t.app.say("to compare: %s", t.app.pageOf(attempt.Page(t.id)))
	return nil
}

// attemptRows adds what the agents took.
func (a *app) attemptRows(ctx context.Context, p *place, all []attempt.Attempt) ([]attemptRow, error) {
	rows := make([]attemptRow, len(all))
	for i, one := range all {
		rows[i].Attempt = one
		if one.Words == "" {
			continue
		}
		spent, err := p.timeline().Spent(ctx, one.Words)
		if err != nil {
			return nil, err
		}
		rows[i].spent = spent
	}
	return rows, nil
}

// printTry prints the attempts of one try.
func (a *app) printTry(id string, rows []attemptRow) error {
	value := tryJSON{Schema: "stet.try.v1", Try: id}
	for _, r := range rows {
		value.Attempts = append(value.Attempts, attemptJSON{
			Branch: r.ID, Number: r.Number, Base: r.Base, Command: r.Command, Began: stamp(r.Began), Ended: r.Ended, ExitCode: r.Exit,
			End: r.End, Score: r.Score, Millis: r.Duration.Milliseconds(), Files: r.Files, Added: r.Added, Removed: r.Removed,
			Words: r.Words, Spent: newSpentJSON(r.spent),
		})
	}
	return a.print(value, a.tryTable(rows))
}

// tryTable shows attempts beside each other.
func (a *app) tryTable(rows []attemptRow) string {
	table := [][]string{{"branch", "exit", "score", "files", "lines", "tokens", "time"}}
	for _, r := range rows {
		cells := []string{r.ID, "running", "", "", "", "", ""}
		if r.Ended {
			cells = []string{
				r.ID, exitText(r.Attempt), scoreText(r.Score), strconv.Itoa(r.Files), fmt.Sprintf("+%d -%d", r.Added, r.Removed),
				"", timeline.DurationText(r.Duration),
			}
			if n := r.spent.Tokens(); n > 0 {
				cells[5] = timeline.TokenText(n)
			}
		}
		table = append(table, cells)
	}
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for i, cell := range cells {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	var text strings.Builder
	for n, cells := range table {
		line := ""
		for i, cell := range cells {
			line += pad(cell, widths[i]+2)
		}
		if line = strings.TrimRight(line, " "); n == 0 {
			line = a.paint().dim(line)
		}
		text.WriteString(line + "\n")
	}
	return text.String()
}

func exitText(one attempt.Attempt) string {
	if one.End != "" {
		return one.End
	}
	return strconv.Itoa(one.Exit)
}

func scoreText(score *float64) string {
	if score == nil {
		return ""
	}
	return strconv.FormatFloat(*score, 'g', 6, 64)
}

// endText says how an attempt ended.
func endText(one attempt.Attempt) string {
	text := "exit code " + strconv.Itoa(one.Exit)
	if one.End != "" {
		text = one.End
	}
	if one.Score != nil {
		text += " · score " + scoreText(one.Score)
	}
	return text + " · " + plural(int64(one.Files), "file") + " changed"
}

// listAttempts shows what is kept, try by try.
func (a *app) listAttempts(ctx context.Context, p *place) error {
	all, err := attempt.List(ctx, p.db.Conversations(), p.space.Path())
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.say("no tries of %s yet", tilde(p.space.Path()))
		return nil
	}
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Try == all[0].Try {
			n++
		}
		rows, err := a.attemptRows(ctx, p, all[:n])
		if err != nil {
			return err
		}
		if !a.json {
			fmt.Fprintf(a.out, "%s  %s\n", when(all[0].Began, now()), clip(all[0].Command, 100))
		}
		if err := a.printTry(all[0].Try, rows); err != nil {
			return err
		}
		if all = all[n:]; len(all) > 0 && !a.json {
			fmt.Fprintln(a.out)
		}
	}
	return nil
}
