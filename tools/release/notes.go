package main

import (
	"fmt"
	"strings"
)

// notesFile has what is new in a version.
const notesFile = "RELEASE_NOTES.md"

// notes is the part of the changelog about one version, without its heading. A version without
// such a part, or with an empty one, is an error.
func notes(changelog, heading string) (string, error) {
	_, part, found := strings.Cut(changelog, "\n## ["+heading+"]")
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has no part %q: say there what this version brings", "## ["+heading+"]")
	}
	_, part, _ = strings.Cut(part, "\n") // the rest of the heading: the date
	part, _, _ = strings.Cut(part, "\n## ")
	if part = strings.TrimSpace(part); part == "" {
		return "", fmt.Errorf("the part %q of CHANGELOG.md is empty", "## ["+heading+"]")
	}
	return part + "\n", nil
}
