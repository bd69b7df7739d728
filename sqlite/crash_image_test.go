package sqlite

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sector is the unit that a disk writes whole.
const sector = 512

// platter is what a disk would hold if the power went now: contents that were
// synced, names that were synced, and everything after them that may or may not
// have arrived.
type platter struct {
	files   map[int]*contents
	names   map[string]int // of files; a directory has the inode 0
	pending []change       // of names, not yet synced
}

type contents struct {
	synced  []byte
	pending []change
}

func newPlatter() *platter {
	return &platter{files: make(map[int]*contents), names: make(map[string]int)}
}

// platterOf starts from an image, all of it synced. The recorder learns which
// inode each name has.
func platterOf(img image, r *recorder) *platter {
	p := newPlatter()
	for _, path := range slices.Sorted(maps.Keys(img)) {
		for dir := dirOf(path); dir != "."; dir = dirOf(dir) {
			p.names[dir] = 0
		}
		r.next++
		r.inodes[path] = r.next
		p.names[path] = r.next
		p.files[r.next] = &contents{synced: slices.Clone(img[path])}
	}
	return p
}

// apply lets one more change happen.
func (p *platter) apply(c change) {
	switch c.op {
	case opWrite, opTruncate:
		f := p.file(c.file)
		f.pending = append(f.pending, c)
	case opSync:
		f := p.file(c.file)
		for _, c := range f.pending {
			f.synced = overwrite(f.synced, c)
		}
		f.pending = nil
	case opSyncFailed:
		p.file(c.file).pending = nil
	case opCreate, opLink, opUnlink, opRename, opMkdir:
		p.pending = append(p.pending, c)
	case opSyncDir:
		p.pending = slices.DeleteFunc(p.pending, func(one change) bool {
			if parent(one) != c.path {
				return false
			}
			rename(p.names, one)
			return true
		})
	}
}

func (p *platter) file(inode int) *contents {
	f := p.files[inode]
	if f == nil {
		f = &contents{}
		p.files[inode] = f
	}
	return f
}

// parent returns the directory that holds the name a change makes or removes.
func parent(c change) string {
	path := c.path
	if c.op == opLink {
		path = c.to
	}
	if dir := dirOf(path); dir != "." {
		return dir
	}
	return ""
}

// rename applies a change of names.
func rename(names map[string]int, c change) {
	switch c.op {
	case opCreate:
		names[c.path] = c.file
	case opMkdir:
		names[c.path] = 0
	case opLink:
		names[c.to] = c.file
	case opRename:
		names[c.to] = c.file
		delete(names, c.path)
	case opUnlink:
		delete(names, c.path)
	}
}

// overwrite applies a write or truncate to a file's content.
func overwrite(data []byte, c change) []byte {
	end := c.off
	if c.op == opWrite {
		end += int64(len(c.data))
	}
	if grow := end - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	if c.op == opTruncate {
		return data[:c.off]
	}
	copy(data[c.off:], c.data)
	return data
}

// image is what is found after a power loss: files by path. Directories that hold
// none make no difference.
type image map[string][]byte

// damage is a way to treat what was not synced.
type damage struct {
	rng   *rand.Rand
	keep  float64 // how likely unsynced contents are to have arrived
	names float64 // the same for names
}

// image returns what is left after damage.
func (p *platter) image(d damage) image {
	names := maps.Clone(p.names)
	for _, c := range p.pending {
		if d.luck(d.names) {
			rename(names, c)
		}
	}
	img := make(image)
	torn := make(map[int][]byte) // two links of a file have the same content
	for path, inode := range names {
		if inode == 0 || !reachable(names, path) {
			continue
		}
		data, done := torn[inode]
		if !done {
			data = p.file(inode).torn(d)
			torn[inode] = data
		}
		img[path] = data
	}
	return img
}

// reachable reports whether all directories above path exist.
func reachable(names map[string]int, path string) bool {
	for dir := dirOf(path); dir != "."; dir = dirOf(dir) {
		if _, ok := names[dir]; !ok {
			return false
		}
	}
	return true
}

func (d damage) keeps() bool { return d.luck(d.keep) }

func (d damage) luck(p float64) bool { return p >= 1 || p > 0 && d.rng.Float64() < p }

// torn returns the content after a power loss. Each sector holds what it held at
// some moment since the last sync, independently of all others, and so does the
// size of the file: writes are lost, torn and reordered in every way.
func (f *contents) torn(d damage) []byte {
	data := append(make([]byte, 0, len(f.synced)+1), f.synced...)
	stopped := make(map[int64]bool)
	size, sizeStopped := int64(len(data)), false
	for _, c := range f.pending {
		if c.op == opTruncate {
			if sizeStopped = sizeStopped || !d.keeps(); !sizeStopped {
				size = c.off
				data = overwrite(data, c)
			}
			continue
		}
		if end := c.off + int64(len(c.data)); end > size {
			if sizeStopped = sizeStopped || !d.keeps(); !sizeStopped {
				size = end
			}
		}
		data = d.writeSectors(data, c, stopped)
	}
	return overwrite(data, change{op: opTruncate, off: size})
}

// writeSectors applies those sectors of a write that arrived.
func (d damage) writeSectors(data []byte, c change, stopped map[int64]bool) []byte {
	for from := int64(0); from < int64(len(c.data)); {
		number := (c.off + from) / sector
		to := min((number+1)*sector-c.off, int64(len(c.data)))
		if stopped[number] = stopped[number] || !d.keeps(); !stopped[number] {
			data = overwrite(data, change{op: opWrite, off: c.off + from, data: c.data[from:to]})
		}
		from = to
	}
	return data
}

var imageSeed = maphash.MakeSeed()

// hash names an image.
func (img image) hash() uint64 { return img.hashWith(asItIs, asItIs) }

func asItIs(data []byte) []byte { return data }

// effect names what an image means: of the log only the frames count that
// recovery will find valid and committed, and of the mark whether it fits the log.
func (img image) effect() uint64 { return img.hashWith(committedFrames, withoutMark) }

func withoutMark(database []byte) []byte {
	database = slices.Clone(database)
	part, _ := overMark(database, 0)
	clear(part)
	return database
}

// wrongLog tells what the mark has against the log, of which there should be nothing
// after any power loss.
func (img image) wrongLog() (string, error) {
	database := bytes.NewReader(img[databaseName])
	m, _, err := readMark(database)
	if err != nil {
		return "", err
	}
	log, there := img[databaseName+logSuffix]
	if !there {
		return m.judge(nil, "log", true)
	}
	return m.judge(bytes.NewReader(log), "log", true)
}

func (img image) hashWith(log, database func([]byte) []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(imageSeed)
	for _, path := range slices.Sorted(maps.Keys(img)) {
		data := img[path]
		maphash.WriteComparable(&h, path)
		maphash.WriteComparable(&h, len(data) > 0) // Open asks whether there is a log
		if strings.HasSuffix(path, "-wal") {
			data = log(data)
		}
		if path == databaseName {
			data = database(data)
		}
		maphash.WriteComparable(&h, len(data))
		h.Write(data)
	}
	return h.Sum64()
}

// committedFrames returns the part of a log that ends with its last valid commit.
// See the library's documentation of the format; checksums are little-endian
// where the magic number is even.
func committedFrames(wal []byte) []byte {
	const header, frameHeader = 32, 24
	if len(wal) < header {
		return nil
	}
	big := binary.BigEndian
	var order binary.ByteOrder = binary.LittleEndian
	if big.Uint32(wal)&1 == 1 {
		order = big
	}
	var s0, s1 uint32
	sum := func(data []byte) {
		for ; len(data) >= 8; data = data[8:] {
			s0 += order.Uint32(data) + s1
			s1 += order.Uint32(data[4:]) + s0
		}
	}
	sum(wal[:24])
	if big.Uint32(wal)&^1 != 0x377f0682 || big.Uint32(wal[24:]) != s0 || big.Uint32(wal[28:]) != s1 {
		return nil
	}
	page, end := int(big.Uint32(wal[8:])), 0
	for at := header; at+frameHeader+page <= len(wal); at += frameHeader + page {
		frame := wal[at : at+frameHeader+page]
		sum(frame[:8])
		sum(frame[frameHeader:])
		if !bytes.Equal(frame[8:16], wal[16:24]) || big.Uint32(frame[16:]) != s0 || big.Uint32(frame[20:]) != s1 {
			break
		}
		if big.Uint32(frame[4:]) != 0 {
			end = at + len(frame)
		}
	}
	return wal[:end]
}

// write puts an image into an empty directory.
func (img image) write(dir string) error {
	for path, data := range img {
		full := filepath.Join(dir, path)
		if strings.Contains(path, "/") {
			if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(full, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// dirOf returns the directory of a recorded path, which has slashes.
func dirOf(path string) string { return filepath.ToSlash(filepath.Dir(path)) }
