package cursor

import (
	"encoding/base64"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/conversation/graph"
)

func FuzzConversationRow(f *testing.F) {
	f.Add([]byte(`{"_v": 16, "composerId": "c", "fullConversationHeadersOnly": [{"bubbleId": "m", "type": 1}], "conversationState": "~", "originalFileStates": {"u": {"content": "x"}}}`))
	f.Add([]byte(`{"_v": 0, "latestCheckpoint": {"files": []}, "conversation": [{"type": 1, "checkpoint": {}}]}`))
	f.Add([]byte(`{"_v": 1e99, "createdAt": -1e300, "conversation": {}, "subagentInfo": [], "name": 7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, doc, err := decodeConversation("c", data)
		if err != nil {
			return
		}
		for id, raw := range c.inlineCheckpoints {
			if id == "" {
				t.Error("a checkpoint without an id")
			}
			if _, err := DecodeCheckpoint(id, raw); err != nil {
				continue
			}
		}
		again, taken := MigrateV1(doc)
		if len(taken) != 0 || len(again) != len(doc) {
			t.Errorf("migrating twice took %d more checkpoints", len(taken))
		}
		state, err := parseState(doc["conversationState"])
		if err == nil && state != nil && blob.Sum(state.Data) != state.ID {
			t.Error("a state under a false id")
		}
	})
}

func FuzzMessageRow(f *testing.F) {
	f.Add([]byte(`{"type": 2, "text": "x", "thinking": {"text": "t"}, "toolFormerData": {"name": "n", "params": {}, "result": null}, "conversationState": "~CgA=", "createdAt": "2023-11-14T22:13:20.000Z"}`))
	f.Add([]byte(`{"type": "1", "thinking": "t", "toolFormerData": [], "conversationState": {"turns": []}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := readMessage("m", Value{ClassText, data})
		if m.ID != "m" || (m.Raw == nil && len(data) > 0) {
			t.Errorf("message = %+v", m)
		}
		if m.State != nil && m.State.ID != blob.Sum(m.State.Data) {
			t.Error("a state under a false id")
		}
	})
}

func FuzzMetadata(f *testing.F) {
	valid, err := base64.StdEncoding.DecodeString("CiBkVXYHwOsxHWxSepogRYRrnxCAA6Llb33OVaNLvjZSlRISMDAwMDAwMDAwMDAwMDAwOS0wGQAA/Vb+vHhCIAIoAQ==")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte{0x18, 0x80})
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := parseMetadata(raw)
		if err == nil && a.State.IsZero() && len(raw) < blob.IDSize {
			t.Error("metadata without a state")
		}
	})
}

func FuzzState(f *testing.F) {
	f.Add("~CiDRCIE5wprpJjZSJDFqrnvMeba7jE80tX6ZQ7Xj4DErywo=")
	f.Add("0a20d1088139c29ae926365224316aae7bcc79b6bb8c4f34b57e9943b5e3e0312bcb")
	f.Add("~")
	f.Add("~820")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStateText(text)
		if err != nil || s == nil {
			return
		}
		if s.ID != blob.Sum(s.Data) {
			t.Error("a state under a false id")
		}
		found, err := refs(graph.State, s.Data)
		if err != nil {
			t.Errorf("accepted, but its references cannot be read: %v", err)
		}
		if n := len(found); n*blob.IDSize > len(s.Data) {
			t.Errorf("%d references in %d bytes", n, len(s.Data))
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"files": [{"uri": {"external": "file:///a"}, "originalModelDiffWrtV0": [{"original": {"startLineNumber": 2, "endLineNumberExclusive": 3}, "modified": ["x"]}]}], "nonExistentFiles": [{"uri": "u"}], "activeInlineDiffs": [{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cp, err := DecodeCheckpoint("cp", data)
		if err != nil {
			return
		}
		for _, file := range cp.Files {
			lines := 0
			for _, c := range file.Changes {
				lines += len(c.Lines)
			}
			v0 := []string{"1", "2", "3"}
			if got := jsoncheckpoint.Apply(v0, file.Changes); len(got) > len(v0)+lines || len(got) < lines {
				t.Errorf("%d lines from %d and %d", len(got), len(v0), lines)
			}
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(sqliteMagic), int64(16))
	f.Fuzz(func(t *testing.T, start []byte, size int64) {
		if len(start) > 4096 || size < int64(len(start)) {
			return
		}
		if _, err := parseHeader(start, size, false); err == nil && len(start) < 100 {
			t.Error("a header of less than 100 bytes")
		}
	})
}
