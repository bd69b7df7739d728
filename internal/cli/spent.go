package cli

import (
	"strings"

	"github.com/stet-dev/stet/timeline"
)

// spentJSON is what a turn took, or several. What is not known is absent.
type spentJSON struct {
	Model            string   `json:"model,omitempty"`
	InputTokens      int64    `json:"input_tokens,omitempty"`
	OutputTokens     int64    `json:"output_tokens,omitempty"`
	CacheReadTokens  int64    `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64    `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64    `json:"reasoning_tokens,omitempty"`
	CostUSD          *float64 `json:"cost_usd,omitempty"`
	DurationMS       int64    `json:"duration_ms,omitempty"`
}

func newSpentJSON(s timeline.Spent) spentJSON {
	return spentJSON{
		Model: s.Model, InputTokens: s.Input, OutputTokens: s.Output, CacheReadTokens: s.CacheRead, CacheWriteTokens: s.CacheWrite,
		ReasoningTokens: s.Reasoning, CostUSD: s.CostUSD, DurationMS: s.Duration.Milliseconds(),
	}
}

// spentWords says what a turn took, or several.
func spentWords(s timeline.Spent) string { return clip(strings.Join(s.Words(), " · "), 100) }

// modelText is the name of a model in a table.
func modelText(model string) string { return clip(timeline.ModelText(model), 20) }
