package hooks

import "encoding/json"

// Notice is what a hook prints so that the model is shown a text with the prompt of an
// event.
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
