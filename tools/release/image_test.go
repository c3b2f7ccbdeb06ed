package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// unpacked returns the files of a tar archive, and the names of its folders.
func unpacked(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name] = content; header.Typeflag == tar.TypeDir && header.Mode != 0o755 {
			t.Errorf("the folder %s has the rights %o", header.Name, header.Mode)
		}
	}
}

// TestImage reads the image as a container engine does, from the index to the program.
func TestImage(t *testing.T) {
	t.Chdir(filepath.Join("..", "..")) // the folder of LICENSE and NOTICE
	b := build{version: "v1.2.3", out: t.TempDir(), progress: io.Discard, tree: tree{commit: "c851867", at: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}}
	programs := map[platform][]byte{{"linux", "amd64"}: []byte("for amd64"), {"linux", "arm64"}: []byte("for arm64")}
	read := func() []byte {
		t.Helper()
		if err := b.writeImage(programs); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(filepath.Join(b.out, "projector_1.2.3_image.oci.tar"))
		if err != nil {
			t.Fatal(err)
		}
		return archive
	}
	archive := read()
	if !bytes.Equal(archive, read()) {
		t.Error("the same programs make two images")
	}
	files := unpacked(t, bytes.NewReader(archive))
	blob := func(d v1.Descriptor, into any) []byte {
		t.Helper()
		content := files[v1.ImageBlobsDir+"/sha256/"+d.Digest.Encoded()]
		if digest.FromBytes(content) != d.Digest || int64(len(content)) != d.Size {
			t.Fatalf("the blob %s has another content", d.Digest)
		}
		if into != nil {
			if err := json.Unmarshal(content, into); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	var named, index v1.Index
	if err := json.Unmarshal(files[v1.ImageIndexFile], &named); err != nil || len(named.Manifests) != 1 || named.Manifests[0].Annotations[v1.AnnotationRefName] != "v1.2.3" {
		t.Fatalf("%v, %s", err, files[v1.ImageIndexFile])
	}
	blob(named.Manifests[0], &index)
	if len(index.Manifests) != len(programs) {
		t.Fatalf("images for %d platforms", len(index.Manifests))
	}
	for _, described := range index.Manifests {
		var manifest v1.Manifest
		var config v1.Image
		blob(described, &manifest)
		blob(manifest.Config, &config)
		if config.Architecture != described.Platform.Architecture || config.Config.Labels[v1.AnnotationRevision] != "c851867" {
			t.Errorf("config %+v", config)
		}
		layer, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(layer)
		if err != nil || digest.FromBytes(content) != config.RootFS.DiffIDs[0] {
			t.Fatalf("the layer is not the one that the config names: %v", err)
		}
		expectRoot(t, unpacked(t, bytes.NewReader(content)), "for "+described.Platform.Architecture)
	}
}

// expectRoot checks the files in the root folder of an image.
func expectRoot(t *testing.T, root map[string][]byte, program string) {
	t.Helper()
	if got := string(root["usr/local/bin/projector"]); got != program {
		t.Errorf("the program is %q, want %q", got, program)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(root["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("no certificate can be read")
	}
	for _, name := range []string{"usr/share/doc/projector/LICENSE", "usr/share/doc/projector/NOTICE", "usr/", "usr/local/bin/", "etc/ssl/certs/"} {
		if _, found := root[name]; !found {
			t.Errorf("the image has no %s", name)
		}
	}
}

// TestImageIsTheDockerfiles compares imageConfig with the last stage of deploy/Dockerfile.
func TestImageIsTheDockerfiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, stage, _ := strings.Cut(string(text), "\nFROM scratch\n")
	quoted := func(words []string) string { return `["` + strings.Join(words, `", "`) + `"]` }
	want := []string{
		"COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt",
		"COPY --from=build /src/bin/projector " + imageConfig.Entrypoint[0],
		"COPY LICENSE NOTICE /usr/share/doc/projector/",
		"USER " + imageConfig.User, "EXPOSE 8080", "ENTRYPOINT " + quoted(imageConfig.Entrypoint), "CMD " + quoted(imageConfig.Cmd),
	}
	if got := strings.Split(strings.TrimSpace(stage), "\n"); !slices.Equal(got, want) {
		t.Errorf("the Dockerfile has %q, the released image %q", got, want)
	}
}
