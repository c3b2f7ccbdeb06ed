package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// What stands between these marks in the document is written by this program.
const (
	markBegin = "<!-- measured: written by make bench -->"
	markEnd   = "<!-- end of measured -->"
)

// reportCmd writes the document anew.
type reportCmd struct {
	Document string `default:"docs/performance.md" help:"Document whose results are shown (default docs/performance.md)."`
}

// Run renders what is kept.
func (c *reportCmd) Run(context.Context, *streams) error {
	kept, err := readResults(resultsPath(c.Document))
	if err == nil && len(kept.Runs) == 0 {
		err = errors.New("no results are kept in " + resultsPath(c.Document))
	}
	if err != nil {
		return err
	}
	return writeDocument(c.Document, render(&kept))
}

// keepRuns adds runs to those kept beside the document and writes it anew.
func keepRuns(document string, m machine, runs []Run) error {
	kept, err := readResults(resultsPath(document))
	if err != nil {
		return err
	}
	kept.replace(m, runs)
	if err := kept.write(resultsPath(document)); err != nil {
		return err
	}
	return writeDocument(document, render(&kept))
}

// writeDocument replaces what stands between the marks and leaves the rest alone.
func writeDocument(path, measured string) error {
	text, err := os.ReadFile(path) //nolint:gosec // G304: the operator's choice
	if errors.Is(err, os.ErrNotExist) {
		text, err = []byte("# Performance\n\n"+markBegin+"\n"+markEnd+"\n"), nil
	}
	if err != nil {
		return err
	}
	spliced, err := splice(string(text), measured)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(spliced), 0o644) //nolint:gosec // G306: part of the documentation
}

func splice(text, measured string) (string, error) {
	before, rest, found := strings.Cut(text, markBegin)
	_, after, ended := strings.Cut(rest, markEnd)
	if !found || !ended {
		return "", fmt.Errorf("the marks %s and %s are missing", markBegin, markEnd)
	}
	return before + markBegin + "\n\n" + strings.TrimSpace(measured) + "\n\n" + markEnd + after, nil
}
