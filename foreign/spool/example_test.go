package spool_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

// A hook adds an event. When the turn ends, its events are read.
func ExampleSpool_Add() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s := spool.Open(dir, "claude-code", "a-session")
	_ = s.Add("UserPromptSubmit", foreign.Event{Kind: foreign.TurnStart}, time.Now())
	_ = s.Add("PostToolUse", foreign.Event{Kind: foreign.ToolEnd, Call: &foreign.Call{Tool: foreign.EditTool, Paths: []string{"main.go"}}}, time.Now())
	turn, err := s.Turn(context.Background())
	fmt.Println(len(turn.Events), turn.Events[1].Paths, err)
	// Output: 2 [main.go] <nil>
}
