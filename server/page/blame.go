package page

import (
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blame"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
)

const (
	blamePrompt = 400 // characters of a prompt or command
	rangeBytes  = 16  // bytes of a range in an answer besides its fields
)

// Blame encodes as many lines as there is room for, and the origins of all.
func Blame(told *blame.Told) *stetv1.BlameResponse {
	res := &stetv1.BlameResponse{Forgotten: told.Forgotten}
	for _, bad := range told.Damaged {
		res.Damaged = append(res.Damaged, &stetv1.Unreadable{Id: wire.Valid(bad.ID), Detail: wire.Valid(bad.Error())})
	}
	for i := range told.Origins {
		res.Origins = append(res.Origins, wireOrigin(&told.Origins[i], told.Words[i]))
	}
	room := wire.MaxMessage/2 - proto.Size(res)
	for _, run := range told.Runs {
		part := &stetv1.BlameRange{Line: uint32(run.Line), Lines: uint32(run.Lines), Then: uint32(run.Then), Origin: uint32(run.Origin)}
		if c := run.Call; c != nil {
			part.Call = &stetv1.BlameCall{Number: uint32(c.Number), Id: wire.Valid(c.ID), Tool: wire.Valid(c.Tool), Command: clipped(c.Command, blamePrompt)}
		}
		if room -= proto.Size(part) + rangeBytes; room < 0 {
			res.Truncated = true
			break
		}
		res.Ranges = append(res.Ranges, part)
	}
	return res
}

func wireOrigin(o *blame.Origin, words *blame.Words) *stetv1.BlameOrigin {
	out := &stetv1.BlameOrigin{
		Kind: string(o.Kind), Why: string(o.Why), Path: wire.Valid(o.Path), First: o.First, Conversation: wire.Valid(o.Writer.Conversation),
		Turn: uint32(o.Writer.Turn), MessageId: wire.Valid(o.Writer.MessageID), Tool: wire.Valid(o.Writer.Tool),
		Agent: wire.Valid(words.Agent), Model: wire.Valid(words.Model), Prompt: clipped(words.Prompt, blamePrompt),
	}
	for _, id := range o.Writer.Among {
		out.Among = append(out.Among, wire.Valid(id))
	}
	if o.At.ID != "" {
		out.Checkpoint, out.Name, out.Place, out.TimeMs = o.At.ID, o.At.Name(), o.At.Place(), o.At.Time.UnixMilli()
	}
	return out
}
