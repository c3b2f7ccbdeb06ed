package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// file is one file of an archive.
type file struct {
	name       string
	content    []byte
	executable bool
}

// pack makes a compressed archive of files in one folder. Order, owner, rights and times
// are fixed, so the same files make the same bytes.
func pack(folder string, at time.Time, files []file) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) }) {
		mode := int64(0o644)
		if f.executable {
			mode = 0o755
		}
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: folder + "/" + f.name, Mode: mode, Size: int64(len(f.content)),
			ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// sumsFile is what `sha256sum -c` reads.
const sumsFile = "SHA256SUMS"

// writeSums writes the checksums of all files of a folder into it.
func writeSums(folder string) error {
	entries, err := os.ReadDir(folder) // sorted
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

// publish writes a file for everybody to read.
func publish(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // G306: what is released is for everybody
}

// module is a Go module in a binary. sum is its line in go.sum.
type module struct{ path, version, sum string }

// vendor is what others wrote that stands in this repository, in a folder of its name
// and version, with its licence.
type vendor struct{ name, version, folder string }

// readVendored finds it in the checkout in root: every folder with a licence of its own.
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

// legal are the names of files that have to go with what they speak of.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// collectLicences is the text of the licences of the modules, of Go itself and of what
// others wrote in this repository: they ask to be handed on with a binary.
func collectLicences(ctx context.Context, modules []module, vendored []vendor) ([]byte, error) {
	var text bytes.Buffer
	root, err := output(ctx, ".", nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := addLicences(&text, "Go", strings.TrimSpace(root)); err != nil {
		return nil, err
	}
	for _, v := range vendored {
		if err := addLicences(&text, v.name+" "+v.version, v.folder); err != nil {
			return nil, err
		}
	}
	folders, err := moduleFolders(ctx, modules)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := addLicences(&text, m.path+" "+m.version, folders[m.path+"@"+m.version]); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// addLicences adds the legal files of a folder; it is an error that there are none.
func addLicences(text *bytes.Buffer, of, folder string) error {
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !legal.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name())) //nolint:gosec // G304: a folder of a module
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(text, "==== %s: %s\n\n%s\n\n", of, entry.Name(), bytes.TrimSpace(content))
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", of, folder)
	}
	return nil
}

// moduleFolders are the folders in which the modules lie unpacked.
func moduleFolders(ctx context.Context, modules []module) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.path+"@"+m.version)
	}
	listed, err := output(ctx, ".", nil, "go", args...)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{} // by path@version
	decoder := json.NewDecoder(strings.NewReader(listed))
	for {
		var m struct{ Path, Version, Dir string }
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return folders, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		folders[m.Path+"@"+m.Version] = m.Dir
	}
}
