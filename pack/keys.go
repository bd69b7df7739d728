package pack

import (
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// A family is the rows of one kind. In some families the key contains the
// conversation; records of agents and checkpoints leave a shadow that names it. Both
// have a key in the database that exists only while the conversation is archived: the
// guard. A reader that finds nothing checks the guard; a writer expects it to be
// absent.

var (
	// headFamily has one row for each conversation.
	headFamily = keyspace.Heads().Start
	// conversationFamilies have many rows for each.
	conversationFamilies = []string{
		family(keyspace.AllMessageHeads()), family(keyspace.AllSaves()), "checkpointId:", "stet:exec:", "stet:ckpt-of-conv:",
	}
	// eventFamily has the events of agents.
	eventFamily = "stet:event:"
	// shadowFamilies leave shadows.
	shadowFamilies = []string{family(keyspace.Agents()), family(keyspace.Checkpoints())}

	own = keyspace.AllPacked()
)

func family(r kv.Range) string { return r.Start }

// isShadow reports whether the row of a key leaves a shadow when it is archived.
func isShadow(key string) bool { return familyOf(key, shadowFamilies) != "" }

func familyOf(key string, families []string) string {
	for _, f := range families {
		if strings.HasPrefix(key, f) {
			return f
		}
	}
	return ""
}

// guardOf returns the guard of a key, or "" if rows of its family are never archived.
func guardOf(key string) string {
	if isShadow(key) {
		return keyspace.Packed(key)
	}
	if rest, ok := strings.CutPrefix(key, headFamily); ok {
		return keyspace.Pack(keyspace.Unescape(rest))
	}
	guard, _ := groupOf(key)
	return guard
}

// groupOf returns the guard of a key in a family of which a conversation or agent
// has many rows, and the range of these rows.
func groupOf(key string) (guard string, group kv.Range) {
	f := familyOf(key, conversationFamilies)
	if f == "" && strings.HasPrefix(key, eventFamily) {
		f = eventFamily
	}
	if f == "" {
		return "", kv.Range{}
	}
	n := strings.IndexByte(key[len(f):], ':')
	if n < 0 {
		return "", kv.Range{}
	}
	id := keyspace.Unescape(key[len(f) : len(f)+n])
	group = keyspace.Prefix(key[:len(f)+n+1])
	if f == eventFamily {
		return keyspace.Packed(keyspace.Agent(id)), group
	}
	return keyspace.Pack(id), group
}

// guardOfRange returns the guard of a range that lies inside one conversation or
// agent, or "" for a wider one.
func guardOfRange(r kv.Range) string {
	if strings.HasPrefix(r.Start, headFamily) && r.End == r.Start+"\x00" {
		return guardOf(r.Start)
	}
	guard, group := groupOf(r.Start)
	if guard == "" || r.End == "" || r.End > group.End {
		return ""
	}
	return guard
}

// inShadows reports whether a range lies inside a family that leaves shadows.
func inShadows(r kv.Range) bool {
	f := familyOf(r.Start, shadowFamilies)
	return f != "" && r.End != "" && r.End <= keyspace.Prefix(f).End
}

// packedRange is where the shadows of a range are.
func packedRange(r kv.Range) kv.Range {
	return kv.Range{Start: keyspace.Packed(r.Start), End: keyspace.Packed(r.End)}
}
