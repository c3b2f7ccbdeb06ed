// Package docs contains the pages that the program serves. They are embedded, so they are available
// without internet and match the version of the program.
package docs

import _ "embed" // embeds the pages

// Runbook says what to do about an alert, in Markdown.
//
//go:embed runbook.md
var Runbook string

// Repairs describes planned work and corrections, in Markdown.
//
//go:embed repairs.md
var Repairs string
