package checkpoint

import (
	"cmp"
	"slices"
)

// WriterClass says what is known about who made a change.
type WriterClass string

// The classes.
const (
	// ByConversation: seen at the end of a conversation's turn, or during it.
	ByConversation WriterClass = "conversation"
	// BySeveral: made while several conversations were at work, none of which claimed
	// it.
	BySeveral WriterClass = "several"
	// ByHand: seen by a checkpoint that belongs to no conversation.
	ByHand WriterClass = "checkpoint"
	// ByUser: made while no conversation was at work, and not seen by a manual
	// checkpoint.
	ByUser WriterClass = "user"
	// ByUserOrLost: made while no conversation was known to be at work, but after a turn
	// whose end nobody saw, because it was interrupted or killed. It may be its work.
	ByUserOrLost WriterClass = "user-or-lost"
	// ByUnseen: made while the path was not captured, so the author is unknown.
	ByUnseen WriterClass = "unseen"
	// ByForgotten: made between two checkpoints whose intermediate ones are no longer
	// kept, or were never sent along.
	ByForgotten WriterClass = "forgotten"
)

// Writer says who made a change, as far as the checkpoints show.
type Writer struct {
	Class        WriterClass `json:"class"`
	Conversation string      `json:"conversation,omitempty"`
	Turn         uint64      `json:"turn,omitempty"`
	MessageID    string      `json:"message_id,omitempty"`
	Tool         string      `json:"tool,omitempty"`
	Author       string      `json:"author,omitempty"`
	// Rewind means that a rewind made the change. Turn is the one that it went to.
	Rewind bool `json:"rewind,omitempty"`
	// Checkpoint is the one that saw the change; empty for the present.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Among lists the possible conversations, for BySeveral and ByUserOrLost.
	Among []string `json:"among,omitempty"`

	// turns are those that can have made the change, if there are several; nil if unknown.
	// The number of one whose beginning nobody saw is 0.
	turns Turns
}

// maybe reports whether a change of one of several turns may be one of a turn.
func (w *Writer) maybe(conversation string, turn uint64) bool {
	among := slices.ContainsFunc(w.turns, func(t Turn) bool {
		return t.Conversation == conversation && (t.Number == turn || t.Number == 0)
	})
	switch w.Class {
	case ByConversation:
		return w.Conversation == conversation && w.Turn == 0 && among
	case BySeveral, ByUserOrLost:
		return slices.Contains(w.Among, conversation) && (w.turns == nil || among)
	}
	return false
}

// Writer says who made the changes that the checkpoint saw, compared with the one
// before it. It depends on the record alone, not on turns that are running now.
func (r *Record) Writer() Writer {
	own := r.Conversation != "" && r.Side != Before && r.Kind != Safety
	if r.Kind == Rewound {
		if own {
			return writerOf(r, ByConversation)
		}
		return writerOf(r, ByHand)
	}
	suspects := r.AtWork.conversations(false)
	if own && !slices.Contains(suspects, r.Conversation) {
		suspects = append(suspects, r.Conversation)
	}
	if len(suspects) == 0 { // what came after the last evidence of a lost turn is not its work
		if r.Kind == Safety || r.Side == Before {
			if lost := r.AtWork.conversations(true); len(lost) > 0 {
				return Writer{Class: ByUserOrLost, Among: lost, Checkpoint: r.ID, turns: r.AtWork}
			}
			return Writer{Class: ByUser, Author: "user", Checkpoint: r.ID}
		}
		return writerOf(r, ByHand)
	}
	suspects = append(suspects, r.AtWork.conversations(true)...)
	slices.Sort(suspects)
	suspects = slices.Compact(suspects)
	if len(suspects) > 1 {
		turns := r.AtWork
		if own {
			turns = append(slices.Clip(turns), Turn{Conversation: r.Conversation, Number: r.Turn})
		}
		return Writer{Class: BySeveral, Among: suspects, Checkpoint: r.ID, turns: turns}
	}
	return r.turnOf(suspects[0], own)
}

// turnOf returns the only conversation that can have made the changes, and its turn
// if there was only one.
func (r *Record) turnOf(conversation string, own bool) Writer {
	w := Writer{Class: ByConversation, Conversation: conversation, Checkpoint: r.ID}
	several := false
	if own {
		w.Turn, w.MessageID, w.Tool, w.Author = r.Turn, r.MessageID, r.Tool, r.Author
	}
	for _, t := range r.AtWork {
		if t.Conversation != conversation {
			continue
		}
		if w.Turn == 0 && w.MessageID == "" {
			w.Turn, w.MessageID = t.Number, t.MessageID
		}
		w.Author = cmp.Or(w.Author, t.Author)
		several = several || t.Number != 0 && t.Number != w.Turn
	}
	if several {
		w.Turn, w.MessageID = 0, ""
		w.turns = r.AtWork
		if own {
			w.turns = append(slices.Clip(w.turns), Turn{Conversation: r.Conversation, Number: r.Turn})
		}
	}
	return w
}

func writerOf(rec *Record, class WriterClass) Writer {
	return Writer{
		Class: class, Conversation: rec.Conversation, Turn: rec.Turn, MessageID: rec.MessageID,
		Tool: rec.Tool, Author: rec.Author, Checkpoint: rec.ID, Rewind: rec.Kind == Rewound,
	}
}
