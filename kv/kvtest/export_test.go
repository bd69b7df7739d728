package kvtest

import "github.com/anishathalye/porcupine"

// Fight and RegisterModel are the parts of RunLinearizable.
var (
	Fight         = fight
	RegisterModel = registerModel
)

// Stale appends two writes and a read after everything else; with wrong, the
// read sees the first of the two.
func Stale(history []porcupine.Operation, wrong bool) []porcupine.Operation {
	end := int64(0)
	for _, op := range history {
		end = max(end, op.Return)
	}
	key := history[0].Input.(operation).key
	seen := "second"
	if wrong {
		seen = "first"
	}
	add := func(at int64, in operation, out outcome) {
		history = append(history, porcupine.Operation{Input: in, Output: out, Call: end + at, Return: end + at + 1})
	}
	add(10, operation{key: key, kind: opWrite, to: "first"}, outcome{})
	add(20, operation{key: key, kind: opWrite, to: "second"}, outcome{})
	add(30, operation{key: key, kind: opRead}, outcome{value: seen})
	return history
}
