package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// file is a file in an archive.
type file struct {
	name string
	data []byte
	mode fs.FileMode
	dir  bool
	uid  int
}

// tarball returns an archive whose bytes depend on nothing but its files and the time.
func tarball(files []file, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)), Mode: int64(f.mode.Perm()), ModTime: when, Format: tar.FormatUSTAR,
			Uid: f.uid, Gid: f.uid,
		}
		if f.dir {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// compress compresses without a name and a time.
func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func compressedTarball(files []file, when time.Time) ([]byte, error) {
	data, err := tarball(files, when)
	if err != nil {
		return nil, err
	}
	return compress(data)
}

// zipped is tarball for systems that have zip.
func zipped(files []file, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		header.SetMode(f.mode)
		to, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// archiveName is the archive of a target.
func (r *release) archiveName(t target) string {
	name := "stet_" + r.number() + "_" + t.os + "_" + t.arch
	if t.os == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// archives has the programs of each target, with manual pages and completions.
func (r *release) archives(context.Context) error {
	for _, t := range r.targets {
		dir := "stet_" + r.number() + "/"
		files, err := r.programFiles(t, dir)
		if err != nil {
			return err
		}
		for _, f := range r.shared {
			f.name = dir + f.name
			files = append(files, f)
		}
		pack := compressedTarball
		if t.os == "windows" {
			pack = zipped
		}
		data, err := pack(files, r.when)
		if err != nil {
			return err
		}
		if err := r.write(r.archiveName(t), data); err != nil {
			return err
		}
	}
	return nil
}

// sharedFiles are the licence and what people read, the manual pages and the completions.
func (r *release) sharedFiles(ctx context.Context) ([]file, error) {
	var out []file
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: name, data: data, mode: 0o644})
	}
	dir := filepath.Join(r.work, "manual")
	if err := r.manual(ctx, r, dir); err != nil {
		return nil, err
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out = append(out, file{name: filepath.ToSlash(name), data: data, mode: 0o644})
		return err
	})
	return out, err
}

// manual writes manual pages and completions. It is a program of its own, since it has all
// verbs inside.
func manual(ctx context.Context, r *release, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "-trimpath", "./internal/tools/manual", dir, r.date)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	return nil
}
