package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// These types are the parts of a CycloneDX 1.6 document that a release uses.
type (
	bill struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"` // version of the document
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Tools     tools     `json:"tools"`
		Component component `json:"component"`
	}
	tools struct {
		Components []component `json:"components"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref,omitempty"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		PURL       string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref  string   `json:"ref"`
		Uses []string `json:"dependsOn,omitempty"`
	}
)

func (b *build) program(p platform, content []byte) component {
	return component{
		Type: "application", Ref: "projector", Name: "projector", Version: b.version,
		Hashes:     []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(content))}},
		Properties: []property{{"commit", b.tree.commit}, {"GOOS", p.os}, {"GOARCH", p.arch}},
	}
}

// components returns the parts of a program: Go's library, the modules in its build info, and
// embedded third-party code.
func components(modules []module, vendored []vendor) []component {
	parts := []component{library("std", runtime.Version(), "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"))}
	for _, m := range modules {
		part := library(m.path, m.version, "pkg:golang/"+m.path+"@"+strings.ReplaceAll(m.version, "+", "%2B"))
		part.Properties = []property{{"go.sum", m.sum}}
		parts = append(parts, part)
	}
	for _, v := range vendored {
		parts = append(parts, library(v.name, v.version, "pkg:npm/"+v.name+"@"+v.version))
	}
	return parts
}

// imageMaterials writes the bill of materials of the image: the program, its parts, and the
// certificates.
func (b *build) imageMaterials(p platform, program []byte, parts []component) error {
	version, err := certificatesVersion()
	if err != nil {
		return err
	}
	certificates := library("ca-certificates.crt", version, "pkg:golang/"+certificatesModule+"@"+version)
	certificates.Type = "data"
	application := b.program(p, program)
	image := component{Type: "container", Ref: "projector-image", Name: "projector", Version: b.version, Properties: application.Properties}
	bill, err := b.materials(image, append([]component{application, certificates}, parts...))
	if err != nil {
		return err
	}
	return publish(filepath.Join(b.out, b.name(p)+"_image.cdx.json"), bill)
}

// materials returns the bill of materials of the component self. Its serial number is computed from
// its parts, and its time is the time of the commit. Each build therefore gives the same document.
func (b *build) materials(self component, parts []component) ([]byte, error) {
	listed, err := json.Marshal(append([]component{self}, parts...))
	if err != nil {
		return nil, err
	}
	uses, all := dependency{Ref: self.Ref}, []dependency{}
	for i := range parts {
		uses.Uses = append(uses.Uses, parts[i].Ref)
		all = append(all, dependency{Ref: parts[i].Ref})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6",
		Serial: "urn:uuid:" + serial(sha256.Sum256(listed)), Version: 1,
		Metadata: metadata{
			Timestamp: b.tree.at.Format(time.RFC3339),
			Tools:     tools{[]component{{Type: "application", Name: "projector/tools/release", Version: b.version}}},
			Component: self,
		},
		Components: parts, Dependencies: append([]dependency{uses}, all...),
	})
	return text.Bytes(), err
}

func library(name, version, purl string) component {
	return component{Type: "library", Ref: purl, Name: name, Version: version, PURL: purl}
}

// serial returns a UUID computed from a checksum. The UUID has version 8, which the standard leaves
// to applications.
func serial(sum [sha256.Size]byte) string {
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
