package timeline

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Words returns the known costs of turns: the model, tokens, cost and time, as in
// "opus-5", "12.3k tokens", "$0.12" and "41s".
func (s Spent) Words() []string {
	var words []string
	if s.Model != "" {
		words = append(words, ModelText(s.Model))
	}
	if n := s.Tokens(); n > 0 {
		words = append(words, TokenText(n)+" tokens")
	}
	if text := CostText(s.CostUSD); text != "" {
		words = append(words, text)
	}
	if s.Duration > 0 {
		words = append(words, DurationText(s.Duration))
	}
	return words
}

// dated is the release date at the end of a model's name.
var dated = regexp.MustCompile(`-20\d{6}$`)

// ModelText returns the name of a model without its release date.
func ModelText(model string) string { return dated.ReplaceAllString(model, "") }

// TokenText formats a number of tokens, such as 12.3k, or "" for none.
func TokenText(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// CostText formats a cost; it returns "" if the cost is unknown.
func CostText(usd *float64) string {
	switch {
	case usd == nil || *usd <= 0:
		return ""
	case *usd < 0.01:
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", *usd)
}

// DurationText formats how long something took, to two figures or to the second.
func DurationText(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	for _, none := range []string{"m0s", "h0m"} { // 4m, not 4m0s
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}
