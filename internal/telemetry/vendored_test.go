package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestVendoredFilesAreUnaltered shows that third-party files, including licences, are the same as
// in their npm packages.
func TestVendoredFilesAreUnaltered(t *testing.T) {
	for path, want := range map[string]string{
		"page/assets/uplot/" + uPlotVersion + "/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"page/assets/uplot/" + uPlotVersion + "/uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"page/assets/uplot/" + uPlotVersion + "/LICENSE":           "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
		"testdata/axe-core/4.14.1/axe.min.js":                      "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the checksum %x", path, sum)
		}
	}
}

func TestVendoredFilesAreServedAndKept(t *testing.T) {
	s := busy(1).server()
	for name, contentType := range map[string]string{"uPlot.iife.min.js": "javascript", "uPlot.min.css": "text/css", "LICENSE": "text/plain"} {
		r := get(t, s, "/uplot/"+uPlotVersion+"/"+name)
		if r.code != http.StatusOK || !strings.Contains(r.header.Get("Content-Type"), contentType) || !strings.Contains(r.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, r.code, r.header)
		}
	}
}
