package main

import (
	"fmt"
	"strings"
)

// notesFile lists the changes of a version.
const notesFile = "RELEASE_NOTES.md"

// notes returns the part of the changelog about one version, without its heading. It returns an
// error if the part is missing or empty.
func notes(changelog, heading string) (string, error) {
	_, part, found := strings.Cut(changelog, "\n## ["+heading+"]")
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has no part %q: say there what this version brings", "## ["+heading+"]")
	}
	_, part, _ = strings.Cut(part, "\n") // skip the rest of the heading, which is the date
	part, _, _ = strings.Cut(part, "\n## ")
	if part = strings.TrimSpace(part); part == "" {
		return "", fmt.Errorf("the part %q of CHANGELOG.md is empty", "## ["+heading+"]")
	}
	return part + "\n", nil
}
