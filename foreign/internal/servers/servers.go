// Package servers writes the entries of settings by which agents start a server of the Model
// Context Protocol. It promises that the entry can be recognised as ours wherever the
// program is, and that a server with the same name that the user registered stays. Adapters
// decide which file to change and what else its entries contain.
//
//	servers.Member(path, []string{"mcpServers"}, c, func(program string, args []string) any {
//		return server{Command: program, Args: args}
//	})
package servers

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/foreign"
)

// Name is the name of the server for agents.
const Name = "stet"

// Member returns the change of a JSON file that registers a command as a member of an
// object. The value is made of the program and its arguments.
func Member(path string, object []string, c foreign.Connect, value func(program string, args []string) any) ([]foreign.Change, error) {
	if err := complete(c); err != nil {
		return nil, err
	}
	words := c.Words()
	data, err := json.Marshal(value(words[0], words[1:]))
	if err != nil {
		return nil, err
	}
	return []foreign.Change{{Path: path, Hooks: []foreign.HookEntry{{
		List: slices.Clone(object), Key: Name, Value: string(data), Ours: c.Command[len(c.Command)-1],
	}}}}, nil
}

// Table returns the change of a TOML file that registers a command as a table inside
// another one.
func Table(path, inside string, c foreign.Connect) ([]foreign.Change, error) {
	if err := complete(c); err != nil {
		return nil, err
	}
	words := c.Words()
	program, err := json.Marshal(words[0]) // a text of JSON is one of TOML
	if err != nil {
		return nil, err
	}
	args, err := json.Marshal(words[1:])
	if err != nil {
		return nil, err
	}
	return []foreign.Change{{Path: path, Block: &foreign.Block{
		Table: inside + "." + Name, Lines: []string{"command = " + string(program), "args = " + string(args)},
	}}}, nil
}

func complete(c foreign.Connect) error {
	if len(c.Command) < 2 {
		return fmt.Errorf("%w: no command", foreign.ErrSettings)
	}
	return nil
}

// Server is the entry that most agents have.
type Server struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	// Tools are the tools that the agent may use.
	Tools []string `json:"tools,omitempty"`
}
