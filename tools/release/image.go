package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificatesModule holds the root certificates that Mozilla trusts. The image does not use the
// certificates of the build machine, because the same commit must always give the same image.
const certificatesModule = "golang.org/x/crypto/x509roots/fallback"

// certificates returns the trusted roots in PEM. It omits roots that are trusted only under
// conditions, because PEM cannot express conditions.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}

// certificatesVersion returns the version of certificatesModule in this program.
func certificatesVersion() (string, error) {
	if info, found := debug.ReadBuildInfo(); found {
		for _, m := range info.Deps {
			if m.Path == certificatesModule {
				return m.Version, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not in this program", certificatesModule)
}

// imageConfig starts the program in the same way as the last stage of deploy/Dockerfile does.
var imageConfig = v1.ImageConfig{
	User:         "65532:65532",
	ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	Entrypoint:   []string{"/usr/local/bin/projector"},
	Cmd:          []string{"run"},
}

func imageFiles() ([]file, error) {
	files := []file{{name: "etc/ssl/certs/ca-certificates.crt", content: certificates()}}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		content, err := os.ReadFile(name) //nolint:gosec // G304: named above
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "usr/share/doc/projector/" + name, content: content})
	}
	return files, nil
}

// layout is an OCI image layout: https://github.com/opencontainers/image-spec.
type layout struct {
	at    time.Time
	files []file
}

// add stores a blob under its digest and returns its descriptor.
func (l *layout) add(mediaType string, content []byte) v1.Descriptor {
	sum := digest.FromBytes(content)
	l.files = append(l.files, file{name: v1.ImageBlobsDir + "/sha256/" + sum.Encoded(), content: content})
	return v1.Descriptor{MediaType: mediaType, Digest: sum, Size: int64(len(content))}
}

func (l *layout) addJSON(mediaType string, document any) (v1.Descriptor, error) {
	content, err := json.Marshal(document)
	return l.add(mediaType, content), err
}

// image adds the image of one platform to the layout.
func (l *layout) image(b *build, p platform, files []file) (v1.Descriptor, error) {
	layer, err := tarred("", l.at, withFolders(files))
	if err != nil {
		return v1.Descriptor{}, err
	}
	compressed, err := compress(layer)
	if err != nil {
		return v1.Descriptor{}, err
	}
	settings := imageConfig
	settings.Labels = map[string]string{
		v1.AnnotationTitle: "projector", v1.AnnotationVersion: b.version, v1.AnnotationRevision: b.tree.commit, v1.AnnotationLicenses: "Apache-2.0",
	}
	config, err := l.addJSON(v1.MediaTypeImageConfig, v1.Image{
		Created: &l.at, Platform: v1.Platform{OS: p.os, Architecture: p.arch}, Config: settings,
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer)}},
		History: []v1.History{{Created: &l.at, CreatedBy: "projector/tools/release"}},
	})
	if err != nil {
		return v1.Descriptor{}, err
	}
	manifest, err := l.addJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: config, Layers: []v1.Descriptor{l.add(v1.MediaTypeImageLayerGzip, compressed)},
	})
	manifest.Platform = &v1.Platform{OS: p.os, Architecture: p.arch}
	return manifest, err
}

// withFolders adds the parent folders of the files. If they were missing, each container engine
// would choose their permissions.
func withFolders(files []file) []file {
	folders := map[string]bool{}
	for _, f := range files {
		for folder := filepath.Dir(f.name); folder != "."; folder = filepath.Dir(folder) {
			folders[folder+"/"] = true
		}
	}
	all := slices.Clone(files)
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		all = append(all, file{name: folder})
	}
	return all
}

// writeImage writes the image of all Linux platforms as an OCI layout in a tar archive. podman,
// skopeo, crane and containerd can read it. programs holds the program of each platform.
func (b *build) writeImage(programs map[platform][]byte) error {
	common, err := imageFiles()
	if err != nil {
		return err
	}
	l := layout{at: b.tree.at}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for _, p := range platforms { // in the order of platforms
		if program, built := programs[p]; built {
			files := append(slices.Clone(common), file{name: strings.TrimPrefix(imageConfig.Entrypoint[0], "/"), content: program, executable: true})
			manifest, err := l.image(b, p, files)
			if err != nil {
				return err
			}
			index.Manifests = append(index.Manifests, manifest)
		}
	}
	if len(index.Manifests) == 0 {
		return errors.New("there is no program for an image")
	}
	platformIndex, err := l.addJSON(v1.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	platformIndex.Annotations = map[string]string{v1.AnnotationRefName: b.version}
	index.Manifests = []v1.Descriptor{platformIndex}
	for name, document := range map[string]any{v1.ImageIndexFile: index, v1.ImageLayoutFile: v1.ImageLayout{Version: v1.ImageLayoutVersion}} {
		content, err := json.Marshal(document)
		if err != nil {
			return err
		}
		l.files = append(l.files, file{name: name, content: content})
	}
	archive, err := tarred("", l.at, l.files)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.progress, "image %s for %d platforms\n", platformIndex.Digest, len(programs))
	return publish(filepath.Join(b.out, fmt.Sprintf("projector_%s_image.oci.tar", b.version[1:])), archive)
}
