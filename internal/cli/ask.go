package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// readLine reads an answer from the terminal. An interrupt ends it at once; the read
// itself continues until the process ends.
func (a *app) readLine(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(a.err, prompt)
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := bufio.NewReader(a.in).ReadString('\n')
		answers <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return "", errInterrupted
	case got := <-answers:
		if got.err != nil && got.text == "" {
			return "", errInterrupted
		}
		return strings.ToLower(strings.TrimSpace(got.text)), nil
	}
}

// agreed asks a question whose default answer is yes. Without a terminal it fails
// with the exit code for that.
func (a *app) agreed(ctx context.Context, yes bool, question string) error {
	if yes || !isTerminal(a.in) || a.json {
		return a.confirm(yes, question)
	}
	answer, err := a.readLine(ctx, question+" [Y/n] ")
	switch {
	case err != nil:
		return err
	case answer == "" || answer == "y" || answer == "yes":
		return nil
	}
	return coded(ExitUsage, "nothing was changed")
}
