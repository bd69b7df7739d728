package cli

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/proof"
)

type verifyFlags struct{ key, files, at string }

func (a *app) verifyCommand() *cobra.Command {
	var flags verifyFlags
	cmd := &cobra.Command{
		Use:     "verify FILE|-",
		Short:   "Check a proof, without the store",
		GroupID: groupLook,
		Long: `Check a proof of 'stet prove': the signature, the chain of the log of operations, the
trees of hashes and all content in it. This needs no store and no network. stet prints what
the proof proves, the key, the time, and what had been erased by then. If a byte was changed
or is missing, the exit code is 6.

A proof names the key that signed it. Use --key to pass the key that you got from the owner
of the store ('stet prove --public-key'), as text or as a file: without it, anyone may have
signed the proof. The time is that of the signer's clock.

--files compares a directory with the files of the latest checkpoint in the proof, or of
the one that --at names. Differences are listed, and the exit code is 6. Files that the
checkpoint does not have are only counted: a proof says nothing about them.`,
		Example:     "  stet verify talk.proof\n  stet verify talk.proof --key owner.pub\n  stet verify - --files . --at c7 < talk.proof",
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{withoutSettings: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if flags.at != "" && flags.files == "" {
				return usage(errors.New("--at needs --files DIR"))
			}
			return a.verifyProof(args[0], flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.key, "key", "", "public key of the expected signer, or a file with it")
	f.StringVar(&flags.files, "files", "", "directory to compare with the proven files")
	f.StringVar(&flags.at, "at", "", "checkpoint of the proof for --files, such as c7 (default: the latest)")
	return cmd
}

type verifyJSON struct {
	Schema       string            `json:"schema"`
	OK           bool              `json:"ok"`
	Conversation string            `json:"conversation,omitempty"`
	Title        string            `json:"title,omitempty"`
	Checkpoint   string            `json:"checkpoint,omitempty"`
	Time         string            `json:"time"`
	Key          string            `json:"key"`
	KeyExpected  bool              `json:"key_expected"`
	Contents     bool              `json:"contents"`
	Root         string            `json:"root"`
	Log          verifyLogJSON     `json:"log"`
	Saves        int               `json:"saves"`
	RemovedSaves []uint64          `json:"removed_saves"`
	Checkpoints  []verifyPointJSON `json:"checkpoints"`
	Operations   int               `json:"operations"`
	Blobs        int               `json:"blobs"`
	Hashes       int               `json:"hashes"`
	Rewritten    []verifyRowJSON   `json:"rewritten"`
	Gone         []string          `json:"gone"`
	Files        *verifyFilesJSON  `json:"files,omitempty"`
}

type verifyLogJSON struct {
	Entries uint64 `json:"entries"`
	Link    string `json:"link"`
}

type verifyPointJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Tree string `json:"tree"`
	Time string `json:"time"`
}

type verifyRowJSON struct {
	Key      string `json:"key"`
	Original string `json:"original"`
}

type verifyFilesJSON struct {
	Dir     string             `json:"dir"`
	Differ  []proof.Difference `json:"differ"`
	Unknown []string           `json:"unknown"`
}

func (a *app) verifyProof(file string, flags verifyFlags) error {
	key, err := publicKeyIn(flags.key)
	if err != nil {
		return err
	}
	var in io.Reader = a.in
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return coded(ExitNotFound, "%w", err)
		}
		if err != nil {
			return err
		}
		defer f.Close() // only read
		in = f
	}
	found, err := proof.Verify(in, &proof.VerifyOptions{Key: key})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	value := newVerifyJSON(found, key != nil)
	if flags.files != "" {
		differ, extra, err := found.Compare(flags.files, flags.at)
		if err != nil {
			return err
		}
		value.Files = &verifyFilesJSON{Dir: flags.files, Differ: append([]proof.Difference{}, differ...), Unknown: append([]string{}, extra...)}
		value.OK = len(differ) == 0
	}
	if err := a.print(value, verifyText(found, value)); err != nil || value.OK {
		return err
	}
	return silentExit{ExitDamage}
}

// publicKeyIn reads a public key that is given as text or as a file.
func publicKeyIn(text string) (ed25519.PublicKey, error) {
	if text == "" {
		return nil, nil
	}
	key, err := proof.ParsePublic(text)
	if err == nil {
		return key, nil
	}
	data, readErr := os.ReadFile(text)
	if readErr != nil {
		return nil, fmt.Errorf("--key %s: %w, and not a file", text, err)
	}
	if key, err = proof.ParsePublic(string(data)); err != nil {
		return nil, fmt.Errorf("--key %s: %w", text, err)
	}
	return key, nil
}

func newVerifyJSON(r *proof.Result, expected bool) *verifyJSON {
	value := &verifyJSON{
		Schema: "stet.verify.v1", OK: true, Conversation: r.Conversation, Title: r.Title, Checkpoint: r.Checkpoint,
		Time: proofTime(r.Time), Key: proof.FormatPublic(r.Key), KeyExpected: expected, Contents: r.Contents,
		Root: r.Root.String(), Log: verifyLogJSON{r.LogEntries, r.LogLink.String()}, Saves: len(r.Saves),
		RemovedSaves: append([]uint64{}, r.RemovedSaves...), Checkpoints: []verifyPointJSON{}, Operations: len(r.Operations),
		Blobs: r.Blobs, Hashes: r.Hashes, Rewritten: []verifyRowJSON{}, Gone: []string{},
	}
	for _, c := range r.Checkpoints {
		value.Checkpoints = append(value.Checkpoints, verifyPointJSON{c.ID, c.Name, c.Tree.String(), proofTime(c.Time)})
	}
	for _, row := range r.Rewritten {
		value.Rewritten = append(value.Rewritten, verifyRowJSON{row.Key, row.Original.String()})
	}
	for _, id := range r.Gone {
		value.Gone = append(value.Gone, id.String())
	}
	return value
}

func proofTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func verifyText(r *proof.Result, value *verifyJSON) string {
	var b strings.Builder
	subject := "conversation " + r.Conversation
	if r.Title != "" {
		subject += fmt.Sprintf(" %q", r.Title)
	}
	if r.Checkpoint != "" {
		subject = "checkpoint " + r.Checkpoints[0].Name + " (" + r.Checkpoint + ")"
	}
	state := "ok"
	if !value.OK {
		state = "differs"
	}
	fmt.Fprintf(&b, "%s  %s\n", state, printable(subject))
	fmt.Fprintf(&b, "signed       %s, by the clock of the signer\n", value.Time)
	fmt.Fprintf(&b, "key          %s", value.Key)
	if !value.KeyExpected {
		b.WriteString("  (not compared: pass --key)")
	}
	b.WriteString("\n")
	if r.Checkpoint == "" {
		fmt.Fprintf(&b, "saves        %d", len(r.Saves))
		if n := len(r.RemovedSaves); n > 0 {
			fmt.Fprintf(&b, ", and %d removed before", n)
		}
		b.WriteString("\n")
	}
	for i, c := range r.Checkpoints {
		if i == 3 && len(r.Checkpoints) > 5 {
			fmt.Fprintf(&b, "             and %d more\n", len(r.Checkpoints)-4)
		}
		if i >= 3 && len(r.Checkpoints) > 5 && i < len(r.Checkpoints)-1 {
			continue
		}
		fmt.Fprintf(&b, "checkpoint   %s  tree %s\n", c.Name, c.Tree)
	}
	fmt.Fprintf(&b, "operations   %d of %d in the log, chain complete to %s\n", len(r.Operations), r.LogEntries, r.LogLink)
	fmt.Fprintf(&b, "contents     %s in the proof, %d only as hashes\n", plural(int64(r.Blobs), "blob"), r.Hashes)
	for _, row := range value.Rewritten {
		fmt.Fprintf(&b, "rewritten    %s  was %s\n", printable(row.Key), row.Original)
	}
	for _, id := range value.Gone {
		fmt.Fprintf(&b, "erased       %s\n", id)
	}
	b.WriteString(filesText(value.Files))
	return b.String()
}

func filesText(files *verifyFilesJSON) string {
	if files == nil {
		return ""
	}
	var b strings.Builder
	if len(files.Differ) == 0 {
		fmt.Fprintf(&b, "files        %s matches", printable(files.Dir))
	} else {
		fmt.Fprintf(&b, "files        %s in %s differ", plural(int64(len(files.Differ)), "path"), printable(files.Dir))
	}
	if n := len(files.Unknown); n > 0 {
		fmt.Fprintf(&b, "; nothing is proven about %s", plural(int64(n), "other path"))
	}
	b.WriteString("\n")
	for _, d := range files.Differ {
		fmt.Fprintf(&b, "  %-8s %s\n", d.What, printable(d.Path))
	}
	return b.String()
}
