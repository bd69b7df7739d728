package cli

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/populate"
	"github.com/stet-dev/stet/kv"
)

// fixtureMain does what scripts cannot do with the command line:
//
//	fixture chat ID TITLE TEXT…   save a conversation with a turn for each text
//	fixture many NUMBER           save that many conversations of one turn
//	fixture aged FILE TEXT…       a checkpoint for each content of a file, a day apart
//	fixture flip FILE…            change the last byte but a few of files
//	fixture objects               print the paths of all object files
//	fixture big ID                save a file that is kept as an object of its own
//	fixture bytes FILE            write a file that is kept as an object of its own
//	fixture truncate FILE         cut a file in half
//	fixture killed ID TITLE TEXT… as chat, but the process ends before it closes the store
//	fixture row KEY…              change a bit in the stored values of rows
//	fixture lose KEY…             remove rows
//	fixture loseroot ID [SAVE]    remove the blob of a conversation's current state, or that of a save
//	fixture damageroot ID [SAVE]  store other bytes in its place
//	fixture vscdb FILE KEY=TEXT…  add rows to a database of the editor, which is made if missing
//	fixture sealed FILE KEYFILE   make a database of the editor with a conversation whose blobs are encrypted
func fixtureMain(args []string) int {
	err := errors.New("no such fixture")
	switch args[0] {
	case "chat":
		err = fixtureChat(args[1], args[2], args[3:])
	case "killed":
		if err = fixtureChatIn(args[1], args[2], args[3:], func(*stet.DB) {}); err == nil {
			os.Exit(0)
		}
	case "many":
		err = fixtureMany(args[1])
	case "aged":
		err = fixtureAged(args[1], args[2:])
	case "flip":
		err = fixtureFlip(args[1:])
	case "objects":
		err = fixtureObjects()
	case "big":
		err = fixtureBig(args[1])
	case "bytes":
		err = os.WriteFile(args[1], randomBytes(), 0o600)
	case "row":
		err = fixtureRows(args[1:], func(row kv.Row) *kv.Batch {
			row.Value[len(row.Value)-1] ^= 1
			return &kv.Batch{Set: []kv.Set{{Key: row.Key, Value: row.Value}}}
		})
	case "lose":
		err = fixtureRows(args[1:], func(row kv.Row) *kv.Batch { return &kv.Batch{Delete: []string{row.Key}} })
	case "loseroot":
		err = fixtureLoseRoot(args[1], args[2:], nil)
	case "damageroot":
		err = fixtureLoseRoot(args[1], args[2:], []byte("not what was stored"))
	case "vscdb":
		err = fixtureVSCDB(args[1], args[2:])
	case "sealed":
		err = fixtureSealed(args[1], args[2])
	case "truncate":
		err = fixtureTruncate(args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fixtureRows changes rows below everything that checks them.
func fixtureRows(keys []string, change func(kv.Row) *kv.Batch) error {
	ctx := context.Background()
	db, err := stet.Open(ctx, os.Getenv("STET_STORE"), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, key := range keys {
		row, err := db.Engine().Rows().Get(ctx, key)
		if err != nil {
			return err
		}
		if err := db.Engine().Rows().Commit(ctx, change(row)); err != nil {
			return err
		}
	}
	return nil
}

func fixtureMany(number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	ctx := context.Background()
	db, err := stet.Open(ctx, os.Getenv("STET_STORE"), nil)
	if err != nil {
		return err
	}
	return errors.Join(populate.Conversations(ctx, db.Conversations(), n), db.Close())
}

func fixtureChat(id, title string, texts []string) error {
	return fixtureChatIn(id, title, texts, func(db *stet.DB) { db.Close() })
}

func fixtureChatIn(id, title string, texts []string, closing func(*stet.DB)) error {
	ctx := context.Background()
	db, err := stet.Open(ctx, os.Getenv("STET_STORE"), nil)
	if err != nil {
		return err
	}
	defer closing(db)
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: id, Title: title, Agent: "robot", Workspace: dir})
	if errors.Is(err, conversation.ErrExists) {
		c, err = db.Conversations().Open(ctx, id)
	}
	if err != nil {
		return err
	}
	for _, text := range texts {
		answer := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
			AssistantMessage: &agentv1.AssistantMessage{Text: "about " + text},
		}}
		message := "m-" + strings.ReplaceAll(text, " ", "-")
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: message}, answer)
		if err != nil {
			return err
		}
		if err := c.AppendTurn(ctx, turn); err != nil {
			return err
		}
		save, err := c.Save(ctx, &conversation.SaveOptions{MessageID: message, Author: "robot"})
		if err != nil {
			return err
		}
		fmt.Println(save.Root)
	}
	return nil
}

// fixtureAged makes a checkpoint of the working directory for each content of a
// file, a day apart, the last one a day ago.
func fixtureAged(name string, contents []string) error {
	ctx := context.Background()
	db, err := stet.Open(ctx, os.Getenv("STET_STORE"), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	opts := db.CheckpointOptions()
	days := len(contents)
	opts.Now = func() time.Time { return time.Now().Add(time.Duration(-days) * 24 * time.Hour) }
	w, err := checkpoint.New(db.Blobs(), db.Rows(), &opts).Open(ctx, ".")
	if err != nil {
		return err
	}
	defer w.Close()
	for _, content := range contents {
		if err := os.WriteFile(name, []byte(content+"\n"), 0o600); err != nil {
			return err
		}
		if _, err := w.Checkpoint(ctx, checkpoint.Request{Label: content}); err != nil {
			return err
		}
		days--
	}
	return nil
}

func fixtureFlip(paths []string) error {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)-5] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func fixtureObjects() error {
	return filepath.WalkDir(filepath.Join(os.Getenv("STET_STORE"), "objects"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && len(strings.Split(d.Name(), ".")[0]) == 2*blob.IDSize-2 {
			fmt.Println(path)
		}
		return err
	})
}

func fixtureBig(id string) error {
	ctx := context.Background()
	db, err := stet.Open(ctx, os.Getenv("STET_STORE"), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := db.Conversations().Open(ctx, id)
	if err != nil {
		return err
	}
	content := randomBytes()
	if err := c.SetFile(ctx, "big.bin", conversation.File{Content: conversation.NewContent(content)}); err != nil {
		return err
	}
	_, err = c.Save(ctx, nil)
	return err
}

func fixtureTruncate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()/2)
}

// randomBytes returns what does not compress, the same each time.
func randomBytes() []byte {
	content := make([]byte, 300<<10)
	rand.NewChaCha8([32]byte{1}).Read(content) // never fails
	return content
}

// fixtureVSCDB adds rows as the editor does.
func fixtureVSCDB(path string, rows []string) error {
	db, err := sqlite3.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	err = db.Exec("CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB); " +
		"CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
	for _, row := range rows {
		key, value, _ := strings.Cut(row, "=")
		if err != nil {
			return err
		}
		err = db.Exec("INSERT INTO cursorDiskKV VALUES (" + sqlite3.Quote(key) + ", " + sqlite3.Quote(value) + ")")
	}
	return err
}

// fixtureSealed makes a database of the editor with one conversation, whose blobs are
// sealed with the key in a file.
func fixtureSealed(path, keyFile string) error {
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(bytes.TrimSpace(key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "a sealed question", MessageId: "m"})
	if err != nil {
		return err
	}
	state := &conversation.State{Turns: []conversation.Turn{turn}}
	structure, err := state.Structure()
	if err != nil {
		return err
	}
	raw, err := proto.Marshal(structure)
	if err != nil {
		return err
	}
	root := blob.New(raw)
	if err := fixtureVSCDB(path, []string{"agentKv:checkpoint:sealed-1=" + root.ID.String()}); err != nil {
		return err
	}
	db, err := sqlite3.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, b := range append(state.Blobs(), root) {
		nonce := b.ID[:gcm.NonceSize()]
		sealed := gcm.Seal(bytes.Clone(nonce), nonce, b.Data, nil)
		if err := db.Exec(fmt.Sprintf("INSERT INTO cursorDiskKV VALUES ('agentKv:blob:%s', x'%x')", b.ID, sealed)); err != nil {
			return err
		}
	}
	return nil
}

// fixtureLoseRoot removes the root of a conversation, and no other blob. It may put other
// bytes in its place.
func fixtureLoseRoot(id string, at []string, instead []byte) error {
	ctx := context.Background()
	db, err := stet.Open(ctx, os.Getenv("STET_STORE"), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	root, err := db.Conversations().Head(ctx, id)
	if err == nil && len(at) > 0 {
		seq, _ := strconv.ParseUint(at[0], 10, 64)
		var save conversation.Save
		save, err = db.Conversations().SaveAt(ctx, id, seq)
		root = save.Root
	}
	if err != nil {
		return err
	}
	gen, err := db.Engine().Blobs().Begin(ctx)
	if err != nil {
		return err
	}
	_, err = db.Engine().Blobs().Sweep(ctx, gen, blob.SweepOptions{Live: func(one blob.ID) bool { return one != root }})
	if err != nil || instead == nil {
		return err
	}
	return errors.Join(db.Engine().Blobs().Put(ctx, blob.Blob{ID: root, Data: instead}), db.Engine().Blobs().Flush(ctx))
}
