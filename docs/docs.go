// Package docs has the pages that the program serves, so that they are there without internet
// and of the version that runs.
package docs

import _ "embed" // of the pages

// Runbook says what to do about an alert, in Markdown.
//
//go:embed runbook.md
var Runbook string

// Repairs has planned work and corrections, in Markdown.
//
//go:embed repairs.md
var Repairs string
