package compressed

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// dictID is the id under which a base serves as dictionary. It is in the frame,
// so it is part of the format.
const dictID = 1

// thoroughUpTo is the size up to which text without repetitions, such as ids in hex,
// is also checked for skewed bytes. It halves such text (2,000 hex digits take 0.52
// instead of 1.0 of their size) but costs 64 KiB of ordinary text 0.93 instead of
// 0.57 ms and gains nothing there.
const thoroughUpTo = 4 << 10

// smallDictUpTo is the size of dictionary and data up to which an encoder with a
// small window is used.
const smallDictUpTo = 64 << 10

// codec keeps encoders and decoders for reuse; they are costly to make.
type codec struct {
	thorough *zstd.Encoder // for EncodeAll, which may be called concurrently
	quick    *zstd.Encoder // likewise, for large contents
	decoder  *zstd.Decoder // for DecodeAll, likewise

	smallDict, largeDict           sync.Pool // encoders
	dictDecoders                   sync.Pool
	streamEncoders, streamDecoders sync.Pool
}

func newCodec(level int, maxBlob int64) *codec {
	enc := func(more ...zstd.EOption) *zstd.Encoder {
		opts := append([]zstd.EOption{zstd.WithEncoderLevel(zstd.EncoderLevel(level)), zstd.WithEncoderCRC(false)}, more...)
		return must(zstd.NewWriter(nil, opts...))
	}
	dec := func(more ...zstd.DOption) *zstd.Decoder {
		opts := append([]zstd.DOption{zstd.WithDecoderMaxWindow(uint64(max(maxBlob, 64<<20))), zstd.WithDecodeAllCapLimit(true)}, more...)
		return must(zstd.NewReader(nil, opts...))
	}
	literals := zstd.WithAllLitEntropyCompression(true)
	// An encoder keeps twice its window, and there is one for each processor. Content
	// that is compressed as a whole is rarely larger than streamFrom.
	whole := zstd.WithWindowSize(2 * streamFrom)
	c := &codec{thorough: enc(literals, whole), quick: enc(whole), decoder: dec(zstd.WithDecoderConcurrency(0))}
	// Each uses one goroutine; the pool holds one per caller. A dictionary is loaded
	// into new tables every time, so small tables and the fastest level matter more
	// than better matches.
	withDict := func(window int) func() any {
		return func() any {
			return enc(zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(1))
		}
	}
	c.smallDict.New, c.largeDict.New = withDict(2*smallDictUpTo), withDict(2*maxDict)
	c.dictDecoders.New = func() any { return dec(zstd.WithDecoderConcurrency(1)) }
	c.streamEncoders.New = func() any {
		return enc(literals, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4*streamFrom))
	}
	c.streamDecoders.New = func() any {
		return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(16<<20)))
	}
	return c
}

// must is for constructors that fail only for wrong options in the source.
func must[T any](v T, err error) T {
	if err != nil {
		panic("compressed: " + err.Error())
	}
	return v
}

// shrink compresses data, or reports that it is not worth it.
func (c *codec) shrink(data []byte) ([]byte, bool) {
	if len(data) < minAlone {
		return nil, false
	}
	enc := c.quick
	if len(data) <= thoroughUpTo {
		enc = c.thorough
	}
	out := enc.EncodeAll(data, nil)
	out = append(out, padding(int64(len(data)), int64(len(out)))...)
	return out, len(out)+binary.MaxVarintLen32 < len(data)
}

// shrinkWith compresses data with the help of a dictionary.
func (c *codec) shrinkWith(dict, data []byte) ([]byte, error) {
	pool := &c.largeDict
	if max(len(dict), len(data)) <= smallDictUpTo {
		pool = &c.smallDict
	}
	enc := pool.Get().(*zstd.Encoder)
	defer pool.Put(enc)
	if err := enc.ResetWithOptions(nil, zstd.WithEncoderDictRaw(dictID, dict)); err != nil {
		return nil, fmt.Errorf("set dictionary: %w", err)
	}
	out := enc.EncodeAll(data, nil)
	out = append(out, padding(int64(len(data)), int64(len(out)))...)
	return out, enc.ResetWithOptions(nil, zstd.WithEncoderDictDelete())
}

// expand returns the size bytes that a payload holds.
func (c *codec) expand(payload []byte, size int64) ([]byte, error) {
	return decode(c.decoder, payload, size)
}

// expandWith is the inverse of shrinkWith.
func (c *codec) expandWith(dict, payload []byte, size int64) ([]byte, error) {
	dec := c.dictDecoders.Get().(*zstd.Decoder)
	defer c.dictDecoders.Put(dec)
	if err := dec.ResetWithOptions(nil, zstd.WithDecoderDictRaw(dictID, dict)); err != nil {
		return nil, fmt.Errorf("set dictionary: %w", err)
	}
	out, err := decode(dec, payload, size)
	if resetErr := dec.ResetWithOptions(nil, zstd.WithDecoderDictDelete(dictID)); err == nil {
		err = resetErr
	}
	return out, err
}

// decode never takes more memory than size: the decoder stops at the capacity.
func decode(dec *zstd.Decoder, payload []byte, size int64) ([]byte, error) {
	out, err := dec.DecodeAll(payload, make([]byte, 0, size))
	if err != nil {
		return nil, err
	}
	if int64(len(out)) != size {
		return nil, fmt.Errorf("holds %d bytes instead of %d", len(out), size)
	}
	return out, nil
}

// padding returns a skippable zstd frame that keeps highly compressible content
// within the ratio that readers accept.
func padding(size, stored int64) []byte {
	need := (size + maxRatio - 1) / maxRatio
	if size <= freeSize || stored >= need {
		return nil
	}
	const header = 8
	pad := make([]byte, max(header, need-stored))
	binary.LittleEndian.PutUint32(pad, 0x184d2a50)
	binary.LittleEndian.PutUint32(pad[4:], uint32(len(pad)-header))
	return pad
}

// reader inflates a stream until it is closed.
func (c *codec) reader(src io.Reader) (*zstd.Decoder, error) {
	dec := c.streamDecoders.Get().(*zstd.Decoder)
	if err := dec.Reset(src); err != nil {
		c.streamDecoders.Put(dec)
		return nil, err
	}
	return dec, nil
}

func (c *codec) doneReader(dec *zstd.Decoder) {
	if dec.Reset(nil) == nil {
		c.streamDecoders.Put(dec)
	}
}

// writer deflates a stream into dst; doneWriter takes it back.
func (c *codec) writer(dst io.Writer) *zstd.Encoder {
	enc := c.streamEncoders.Get().(*zstd.Encoder)
	enc.Reset(dst)
	return enc
}

func (c *codec) doneWriter(enc *zstd.Encoder) {
	enc.Reset(nil)
	c.streamEncoders.Put(enc)
}
