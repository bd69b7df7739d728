package proof_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/proof"
)

func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 1 save of "add retry", signed with the expected key
}

// example saves a conversation, proves it, and checks the proof without the store.
func example(ctx context.Context) error {
	blobs := memblob.New()
	rows := memkv.New(blobs)
	talk, err := conversation.New(blobs, rows, nil).Create(ctx, conversation.Info{ID: "shop", Title: "add retry"})
	if err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry to checkout"})
	if err != nil {
		return err
	}
	if err := talk.AppendTurn(ctx, turn); err != nil {
		return err
	}
	if _, err := talk.Save(ctx, nil); err != nil {
		return err
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := proof.Write(ctx, &file, proof.Stores{Blobs: blobs, Rows: rows}, proof.Subject{Conversation: "shop"}, key, nil); err != nil {
		return err
	}

	found, err := proof.Verify(&file, &proof.VerifyOptions{Key: public})
	if err != nil {
		return err
	}
	fmt.Printf("%d save of %q, signed with the expected key\n", len(found.Saves), found.Title)
	return nil
}
