package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is an entry of an archive. The name of a folder ends with a slash.
type file struct {
	name       string
	content    []byte
	executable bool
}

// pack makes a compressed archive with the files in one folder.
func pack(folder string, at time.Time, files []file) ([]byte, error) {
	archive, err := tarred(folder+"/", at, files)
	if err != nil {
		return nil, err
	}
	return compress(archive)
}

// tarred makes an archive. All file names in it begin with prefix. Order, owner, permissions and
// times are fixed, so the same files always give the same bytes.
func tarred(prefix string, at time.Time, files []file) ([]byte, error) {
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) }) {
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: prefix + f.name, Mode: 0o644, Size: int64(len(f.content)),
			ModTime: at, Format: tar.FormatUSTAR,
		}
		if f.executable {
			header.Mode = 0o755
		}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return packed.Bytes(), err
}

func compress(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := compressed.Write(content); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return packed.Bytes(), err
}

// sumsFile names the file with the checksums, which has the format that `sha256sum -c` reads.
const sumsFile = "SHA256SUMS"

func writeSums(folder string) error {
	entries, err := os.ReadDir(folder) // in sorted order
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name())) //nolint:gosec // G304: a folder of ours
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return publish(filepath.Join(folder, sumsFile), []byte(sums.String()))
}

// publish writes a file that every user may read.
func publish(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // G306: what is released is for everybody
}

// module is a Go module in a binary. The field sum is the module's checksum as in go.sum.
type module struct{ path, version, sum string }

// vendor is a copy of third-party code in this repository. The path of its folder ends with
// NAME/VERSION, and the folder has a licence.
type vendor struct{ name, version, folder string }

// readVendored finds the folders below root that have their own licence.
func readVendored(root string) ([]vendor, error) {
	var all []vendor
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "testdata"}, name)):
			return fs.SkipDir
		case name == "LICENSE" && path != name:
			folder := filepath.Dir(path)
			all = append(all, vendor{name: filepath.Base(filepath.Dir(folder)), version: filepath.Base(folder), folder: folder})
		}
		return nil
	})
	return all, err
}
