package cli

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
)

func TestVersionForPeople(t *testing.T) {
	const id = "c85186712abcdef0123456789abcdef012345678"
	built := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	for c, want := range map[string]string{
		id:   "projector v1.2.3 (commit c85186712abc, " + built + ")\n",
		"c8": "projector v1.2.3 (commit c8, " + built + ")\n",
	} {
		for _, arg := range []string{"version", "--version"} {
			var out, errOut bytes.Buffer
			if status := Main(t.Context(), []string{arg}, &out, &errOut, flags.BuildInfo{Version: "v1.2.3", Commit: c}); status != exit.OK || out.String() != want {
				t.Errorf("%s: exit status %d, %q, want %q", arg, status, out.String(), want)
			}
		}
	}
}

func TestVersionForPrograms(t *testing.T) {
	built := flags.BuildInfo{Version: "v1.2.3", Commit: "c85186712abcdef0123456789abcdef012345678"}
	var out, errOut bytes.Buffer
	if status := Main(t.Context(), []string{"version", "--output=json"}, &out, &errOut, built); status != exit.OK {
		t.Fatalf("exit status %d, %s", status, errOut.String())
	}
	var got versionDocument
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1.2.3" || got.Commit == nil || *got.Commit != built.Commit || got.GoVersion != runtime.Version() ||
		got.OS != runtime.GOOS || got.Arch != runtime.GOARCH {
		t.Errorf("got %s", out.String())
	}
}
