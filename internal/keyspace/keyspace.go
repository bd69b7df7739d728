// Package keyspace defines the keys of all rows.
//
// Keys have the form of the format that stet is compatible with, so that the same
// tools can read a store; our own rows begin with "stet:". Identifiers are escaped
// before they become part of a key: ':' and '%' are written %3A and %25 (and NUL as
// %00), so that no two identifiers give the same key and no prefix covers another
// identifier. Prefixes are searched by range, never by pattern.
package keyspace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

var (
	escaper   = strings.NewReplacer("%", "%25", ":", "%3A", "\x00", "%00")
	unescaper = strings.NewReplacer("%25", "%", "%3A", ":", "%00", "\x00")
)

// MaxID is the most bytes of an id, so that two of them fit into a key even when every
// byte is escaped.
const MaxID = 256

// CheckID says why a text cannot be an id that a key holds, as the end of a sentence
// about the id.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("is empty")
	case len(id) > MaxID:
		return fmt.Errorf("has %d bytes; the limit is %d", len(id), MaxID)
	case !utf8.ValidString(id):
		return errors.New("is not UTF-8")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("holds a control character")
	}
	return nil
}

// Escape makes an identifier safe as a part of a key.
func Escape(id string) string {
	if !strings.ContainsAny(id, "%:\x00") {
		return id // nearly all
	}
	return escaper.Replace(id)
}

// Unescape is the inverse of Escape.
func Unescape(part string) string {
	if strings.IndexByte(part, '%') < 0 {
		return part
	}
	return unescaper.Replace(part)
}

// Prefix returns the range of all keys with prefix p, which must not be empty or end
// in 0xff bytes only.
func Prefix(p string) kv.Range {
	end := []byte(p)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return kv.Range{Start: p}
	}
	end[len(end)-1]++
	return kv.Range{Start: p, End: string(end)}
}

// Last returns the unescaped last part of a key.
func Last(key string) string { return Unescape(key[strings.LastIndexByte(key, ':')+1:]) }

// Parts splits a key at ':' and unescapes every part.
func Parts(key string) []string {
	parts := strings.Split(key, ":")
	for i, p := range parts {
		parts[i] = Unescape(p)
	}
	return parts
}

// Family returns the fixed prefix or suffix of a key, for counting rows of a kind.
func Family(key string) string {
	const metadata = ":cloudAgent:metadata"
	if strings.HasSuffix(key, metadata) {
		return metadata[1:]
	}
	parts := strings.SplitN(key, ":", 3)
	if len(parts) == 3 && (parts[0] == "stet" || parts[0] == "agentKv") {
		return parts[0] + ":" + parts[1]
	}
	return parts[0]
}

// key joins an unescaped prefix with escaped identifiers.
func key(prefix string, ids ...string) string {
	var b strings.Builder
	b.WriteString(prefix)
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(Escape(id))
	}
	return b.String()
}

// Number formats n so that keys sort in numeric order: sixteen hex digits.
func Number(n uint64) string { return fmt.Sprintf("%016x", n) }

// ParseNumber is the inverse of Number.
func ParseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		return 0, fmt.Errorf("%q is not a row number", s)
	}
	return n, nil
}

// Keys of the compatible format.

// Blob is the key of a blob in the compatible format, which stores blobs as rows.
func Blob(id blob.ID) string { return "agentKv:blob:" + id.String() }

// Head is the latest pointer of a conversation: the hex id of its root.
func Head(conversation string) string { return key("agentKv:checkpoint:", conversation) }

// Heads covers the latest pointers of all conversations.
func Heads() kv.Range { return Prefix("agentKv:checkpoint:") }

// MessageHead is the pointer to the root at one message.
func MessageHead(conversation, message string) string {
	return key("agentKv:bubbleCheckpoint:", conversation, message)
}

// MessageHeads covers the per-message pointers of one conversation.
func MessageHeads(conversation string) kv.Range {
	return Prefix(key("agentKv:bubbleCheckpoint:", conversation) + ":")
}

// AllMessageHeads covers the per-message pointers of all conversations.
func AllMessageHeads() kv.Range { return Prefix("agentKv:bubbleCheckpoint:") }

// JSONCheckpoint is a workspace checkpoint in the compatible JSON form.
func JSONCheckpoint(conversation, checkpoint string) string {
	return key("checkpointId:", conversation, checkpoint)
}

// JSONCheckpoints covers the JSON checkpoints of one conversation.
func JSONCheckpoints(conversation string) kv.Range {
	return Prefix(key("checkpointId:", conversation) + ":")
}

// AllJSONCheckpoints covers the JSON checkpoints of all conversations.
func AllJSONCheckpoints() kv.Range { return Prefix("checkpointId:") }

// AgentMetadata is the light metadata of a cloud agent.
func AgentMetadata(agent string) string { return Escape(agent) + ":cloudAgent:metadata" }

// Keys of our own.

// Conversation is the record of a conversation.
func Conversation(id string) string { return key("stet:conversation:", id) }

// Conversations covers the records of all conversations.
func Conversations() kv.Range { return Prefix("stet:conversation:") }

// Save is one entry of a conversation's history.
func Save(conversation string, seq uint64) string {
	return key("stet:save:", conversation, Number(seq))
}

// Saves covers the history of one conversation.
func Saves(conversation string) kv.Range { return Prefix(key("stet:save:", conversation) + ":") }

// AllSaves covers the histories of all conversations.
func AllSaves() kv.Range { return Prefix("stet:save:") }

// ByTime orders conversations by last change, newest first when scanned in
// reverse. The row's value is empty.
func ByTime(unixMS int64, conversation string) string {
	return key("stet:bytime:", Number(uint64(unixMS)), conversation)
}

// ByTimes covers all rows of that order.
func ByTimes() kv.Range { return Prefix("stet:bytime:") }

// BesideByTime names the rows that describe a conversation of that order: its record and
// its last save.
func BesideByTime() []kv.Beside {
	skip := len(ByTime(0, ""))
	return []kv.Beside{
		{Skip: skip, Prefix: Conversations().Start, To: "\x00"},
		{Skip: skip, Prefix: AllSaves().Start, From: ":", To: ";"},
	}
}

// BesideConversation names the rows that tell where a conversation stands: its record, its
// last save and its head.
func BesideConversation() []kv.Beside {
	beside := BesideByTime()
	beside = append(beside, kv.Beside{Prefix: Heads().Start, To: "\x00"})
	for i := range beside {
		beside[i].Skip = len(Conversation(""))
	}
	return beside
}

// Changed says that a conversation was changed or removed, until indexes have seen it.
// Its keys follow those of ByTime, which the same commits write: both are in one page of
// a database. The row's value is empty.
func Changed(conversation string) string { return key("stet:changed:", conversation) }

// AllChanged covers the changed conversations.
func AllChanged() kv.Range { return Prefix("stet:changed:") }

// Cutoff is the time up to which the session with the id of a conversation is not copied
// again.
func Cutoff(conversation string) string { return key("stet:cutoff:", conversation) }

// Cutoffs covers the cutoffs of all sessions.
func Cutoffs() kv.Range { return Prefix("stet:cutoff:") }

// spanBits is the size of a span: 2^20 milliseconds are 17 minutes.
const spanBits = 20

// Span is the span of time in which a conversation is listed under its workspace and its
// agent. Most saves stay in that of the save before, so that they need not move the rows.
func Span(unixMS int64) uint64 { return uint64(unixMS) >> spanBits }

func formatSpan(span uint64) string { return fmt.Sprintf("%08x", span) }

// ByTimesIn covers the rows of the order by time in a span.
func ByTimesIn(span uint64) kv.Range {
	return kv.Range{Start: ByTime(int64(span<<spanBits), ""), End: ByTime(int64((span+1)<<spanBits), "")}
}

// ConversationOf lists a conversation under its workspace, its agent or both, for which a
// sum stands, in the span of its last change. The row's value is empty.
func ConversationOf(sum string, span uint64, conversation string) string {
	return key("stet:conv-of:", sum, formatSpan(span), conversation)
}

// ParseConversationOf returns the span and the conversation of such a key. Those of earlier
// releases have no span.
func ParseConversationOf(key string) (span uint64, conversation string, ok bool) {
	parts := strings.Split(key, ":")
	if len(parts) != 5 || len(parts[3]) != 8 {
		return 0, "", false
	}
	span, err := strconv.ParseUint(parts[3], 16, 64)
	return span, Unescape(parts[4]), err == nil && formatSpan(span) == parts[3]
}

// ConversationsOf covers the conversations that are listed under a sum.
func ConversationsOf(sum string) kv.Range { return Prefix(key("stet:conv-of:", sum) + ":") }

// ConversationsBefore covers those that are listed under a sum in spans before another.
func ConversationsBefore(sum string, span uint64) kv.Range {
	in := ConversationsOf(sum)
	in.End = in.Start + formatSpan(span)
	return in
}

// ConversationsIn covers those that are listed under a sum in a span.
func ConversationsIn(sum string, span uint64) kv.Range {
	in := ConversationsBefore(sum, span+1)
	in.Start += formatSpan(span)
	return in
}

// EarlierConversationOf is the row that earlier releases wrote instead, without a span.
func EarlierConversationOf(sum, conversation string) string {
	return key("stet:conv-of:", sum, conversation)
}

// AllConversationsOf covers the conversations under all sums.
func AllConversationsOf() kv.Range { return Prefix("stet:conv-of:") }

// CheckpointPin is a name for a checkpoint of a workspace.
func CheckpointPin(name, workspace string) string {
	return key("stet:checkpoint-pin:", name, workspace)
}

// CheckpointPinsNamed covers the pins of one name in all workspaces.
func CheckpointPinsNamed(name string) kv.Range {
	return Prefix(key("stet:checkpoint-pin:", name) + ":")
}

// SharedCheckpointPin is a name for a checkpoint as earlier releases wrote it: one for
// all workspaces.
func SharedCheckpointPin(name string) string { return key("stet:checkpoint-pin:", name) }

// CheckpointPins covers all named checkpoints, of both forms.
func CheckpointPins() kv.Range { return Prefix("stet:checkpoint-pin:") }

// Pin is a named save.
func Pin(name string) string { return key("stet:pin:", name) }

// Pins covers all pins.
func Pins() kv.Range { return Prefix("stet:pin:") }

// Checkpoint is the record of a checkpoint.
func Checkpoint(id string) string { return key("stet:checkpoint:", id) }

// Checkpoints covers all checkpoints.
func Checkpoints() kv.Range { return Prefix("stet:checkpoint:") }

// ConversationCheckpoint lists a checkpoint under its conversation.
func ConversationCheckpoint(conversation, checkpoint string) string {
	return key("stet:ckpt-of-conv:", conversation, checkpoint)
}

// ConversationCheckpoints covers the checkpoints of one conversation.
func ConversationCheckpoints(conversation string) kv.Range {
	return Prefix(key("stet:ckpt-of-conv:", conversation) + ":")
}

// WorkspaceCheckpoint lists a checkpoint under its workspace.
func WorkspaceCheckpoint(workspace, checkpoint string) string {
	return key("stet:ckpt-of-ws:", workspace, checkpoint)
}

// WorkspaceCheckpoints covers the checkpoints of one workspace.
func WorkspaceCheckpoints(workspace string) kv.Range {
	return Prefix(key("stet:ckpt-of-ws:", workspace) + ":")
}

// AllConversationCheckpoints covers the lists of all conversations.
func AllConversationCheckpoints() kv.Range { return Prefix("stet:ckpt-of-conv:") }

// AllWorkspaceCheckpoints covers the lists of all workspaces.
func AllWorkspaceCheckpoints() kv.Range { return Prefix("stet:ckpt-of-ws:") }

// Workspace is the record of a workspace, by the hash of its path.
func Workspace(id string) string { return key("stet:workspace:", id) }

// Workspaces covers all workspaces.
func Workspaces() kv.Range { return Prefix("stet:workspace:") }

// Operation is one entry of the operation log.
func Operation(seq uint64) string { return "stet:op:" + Number(seq) }

// Operations covers the operation log.
func Operations() kv.Range { return Prefix("stet:op:") }

// Journal is the record of a running rewind in a workspace.
func Journal(workspace string) string { return key("stet:journal:", workspace) }

// Journals covers all running rewinds.
func Journals() kv.Range { return Prefix("stet:journal:") }

// Agent is the record of a cloud agent, beside its metadata.
func Agent(agent string) string { return key("stet:agent:", agent) }

// Agents covers the records of all cloud agents.
func Agents() kv.Range { return Prefix("stet:agent:") }

// AgentEvent is one event of a cloud agent's log.
func AgentEvent(agent string, seq uint64) string {
	return key("stet:event:", agent, Number(seq))
}

// AgentEvents covers a cloud agent's log from seq.
func AgentEvents(agent string, seq uint64) kv.Range {
	p := Prefix(key("stet:event:", agent) + ":")
	p.Start = AgentEvent(agent, seq)
	return p
}

// AllAgentEvents covers the logs of all cloud agents.
func AllAgentEvents() kv.Range { return Prefix("stet:event:") }

// Exec is one part of the record of a tool call in a conversation's run.
func Exec(conversation, call string, part uint64) string {
	return key("stet:exec:", conversation, call, Number(part))
}

// Execs covers the tool calls of a conversation's runs.
func Execs(conversation string) kv.Range { return Prefix(key("stet:exec:", conversation) + ":") }

// Frame is one frame of a thread of a graph. The namespace may be empty.
func Frame(thread, namespace, id string) string { return key("stet:frame:", thread, namespace, id) }

// Frames covers the frames of one namespace of a thread.
func Frames(thread, namespace string) kv.Range {
	return Prefix(key("stet:frame:", thread, namespace) + ":")
}

// ThreadFrames covers the frames of a thread.
func ThreadFrames(thread string) kv.Range { return Prefix(key("stet:frame:", thread) + ":") }

// AllFrames covers the frames of all threads.
func AllFrames() kv.Range { return Prefix("stet:frame:") }

// FrameWrite is what a task wrote on top of a frame. Indexes keep their order, negative
// ones come first.
func FrameWrite(thread, namespace, id, task string, index int32) string {
	return key("stet:frame-write:", thread, namespace, id, task, Number(uint64(int64(index)+1<<31)))
}

// FrameWrites covers the writes on top of a frame.
func FrameWrites(thread, namespace, id string) kv.Range {
	return Prefix(key("stet:frame-write:", thread, namespace, id) + ":")
}

// ThreadWrites covers the writes of a thread.
func ThreadWrites(thread string) kv.Range { return Prefix(key("stet:frame-write:", thread) + ":") }

// AllFrameWrites covers the writes of all threads.
func AllFrameWrites() kv.Range { return Prefix("stet:frame-write:") }

// Document is a document of a collection. The name is not escaped, so that documents are in
// the order of their names.
func Document(collection, name string) string {
	return key("stet:document:", collection) + ":" + name
}

// Documents covers the documents of a collection whose names begin with a prefix.
func Documents(collection, prefix string) kv.Range { return Prefix(Document(collection, prefix)) }

// AllDocuments covers the documents of all collections.
func AllDocuments() kv.Range { return Prefix("stet:document:") }

// Mirrored is the mark of what was sent to a remote.
func Mirrored(remote string) string { return key("stet:mirrored:", remote) }

// LocalOnly names a blob that is not sent to remotes, by its stored name.
func LocalOnly(name string) string { return key("stet:local-only:", name) }

// AllLocalOnly covers the blobs that are not sent to remotes.
func AllLocalOnly() kv.Range { return Prefix("stet:local-only:") }

// Kept lists blobs that are held for another store.
func Kept(origin, sum string) string { return key("stet:kept:", origin, sum) }

// AllKept covers the blobs that are held for all other stores.
func AllKept() kv.Range { return Prefix("stet:kept:") }

// Rows of package pack, invisible to other layers.

// Pack locates the rows and blobs of a sealed conversation.
func Pack(conversation string) string { return key("stet:pack:", conversation) }

// Packs covers all sealed conversations.
func Packs() kv.Range { return Prefix("stet:pack:") }

// Packed is the key of a row that was moved aside. The original key is not escaped,
// so that rows keep their order.
func Packed(key string) string { return packed + key }

// Unpacked is the inverse of Packed.
func Unpacked(key string) string { return strings.TrimPrefix(key, packed) }

const packed = "stet:packed:"

// AllPacked covers the rows of both kinds.
func AllPacked() kv.Range { return Prefix("stet:pack") }

// Quarantined is the place of a damaged row that was set aside. The original key is
// not escaped.
func Quarantined(key string) string { return quarantine + key }

// Unquarantined is the inverse of Quarantined.
func Unquarantined(key string) string { return strings.TrimPrefix(key, quarantine) }

const quarantine = "stet:quarantine:"

// Quarantine covers the rows that were set aside.
func Quarantine() kv.Range { return Prefix(quarantine) }

// Setting is a store-wide setting, such as an epoch or a retention policy.
func Setting(name string) string { return key("stet:setting:", name) }

// Stream is the record of the stream under a path.
func Stream(path string) string { return key("stet:stream:", path) }

// Streams covers the records of all streams.
func Streams() kv.Range { return Prefix("stet:stream:") }

// StreamAppend is one append of a stream, by the id of the stream.
func StreamAppend(id string, seq uint64) string { return key("stet:stream-append:", id, Number(seq)) }

// StreamAppends covers the appends of a stream from seq.
func StreamAppends(id string, seq uint64) kv.Range {
	p := Prefix(key("stet:stream-append:", id) + ":")
	p.Start = StreamAppend(id, seq)
	return p
}

// AllStreamAppends covers the appends of all streams.
func AllStreamAppends() kv.Range { return Prefix("stet:stream-append:") }

// StreamProducer is the last append of a producer to a stream.
func StreamProducer(id, producer string) string { return key("stet:stream-producer:", id, producer) }

// StreamProducers covers the producers of a stream.
func StreamProducers(id string) kv.Range { return Prefix(key("stet:stream-producer:", id) + ":") }

// AllStreamProducers covers the producers of all streams.
func AllStreamProducers() kv.Range { return Prefix("stet:stream-producer:") }

// StreamAccess is the last read of a stream that expires without reads.
func StreamAccess(id string) string { return key("stet:stream-access:", id) }

// AllStreamAccesses covers the last reads of all streams.
func AllStreamAccesses() kv.Range { return Prefix("stet:stream-access:") }

// Subscription is the record of a subscription to streams.
func Subscription(id string) string { return key("stet:subscription:", id) }

// Subscriptions covers all subscriptions.
func Subscriptions() kv.Range { return Prefix("stet:subscription:") }
