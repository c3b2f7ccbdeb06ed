package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"
)

// stamped puts a version and a commit in the place of those of the build.
func stamped(t *testing.T, v, c string) {
	t.Helper()
	oldVersion, oldCommit := version, commit
	version, commit = v, c
	t.Cleanup(func() { version, commit = oldVersion, oldCommit })
}

func TestVersionForPeople(t *testing.T) {
	const id = "c85186712abcdef0123456789abcdef012345678"
	stamped(t, "v1.2.3", id)
	built := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	for c, want := range map[string]string{
		id:   "projector v1.2.3 (commit c85186712abc, " + built + ")\n",
		"c8": "projector v1.2.3 (commit c8, " + built + ")\n",
	} {
		commit = c
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), []string{"version"}, &out, &errOut); status != exitOK || out.String() != want {
			t.Errorf("exit status %d, %q, want %q", status, out.String(), want)
		}
	}
}

func TestVersionForPrograms(t *testing.T) {
	stamped(t, "v1.2.3", "c85186712abcdef0123456789abcdef012345678")
	var out, errOut bytes.Buffer
	if status := execute(t.Context(), []string{"version", "--output=json"}, &out, &errOut); status != exitOK {
		t.Fatalf("exit status %d, %s", status, errOut.String())
	}
	var got versionDocument
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1.2.3" || got.Commit == nil || *got.Commit != commit || got.GoVersion != runtime.Version() ||
		got.OS != runtime.GOOS || got.Arch != runtime.GOARCH {
		t.Errorf("got %s", out.String())
	}
}
