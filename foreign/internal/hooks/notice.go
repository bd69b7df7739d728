package hooks

import "encoding/json"

// Notice returns the output of a hook that shows the model a text with the prompt of
// an event.
func Notice(event, text string) []byte {
	type output struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext"`
	}
	line, err := json.Marshal(map[string]output{"hookSpecificOutput": {event, text}})
	if err != nil {
		return nil // two strings can be encoded
	}
	return append(line, '\n')
}
