package telemetry

import (
	"strings"
	"testing"
)

const exampleRunbook = `# Runbook

For whoever is on call: [unready](#unready), [a gap](repairs.md#a-gap), [deploying](deploy.md#x), [repairs](repairs.md).
The same paragraph, with **bold ` + "`code`" + `**.

| you have | go to |
|---|---|
| ` + "`a \\| b`" + ` | [Unready](#unready) |

## Unready

- one
  and more
- two <b>

1. first
2. second

` + "```\nprojector position  # <all>\n\nprojector lag\n```" + `

### Projector "Absent": what?
`

func TestTheRunbookIsServed(t *testing.T) {
	body := get(t, busy(1).server(), "/runbook").body
	for _, want := range []string{
		`<title>Runbook · projector</title>`, `<h1 id="runbook">Runbook</h1>`, `<h2 id="unready">Unready</h2>`, `<h3 id="projector-absent-what">`,
		`<a href="#unready">unready</a>, <a href="repairs#a-gap">a gap</a>, deploying, <a href="repairs">repairs</a>. The same paragraph, with <b>bold <code>code</code></b>.</p>`,
		`<tr><th scope="col">you have</th><th scope="col">go to</th></tr>`, `<tr><td><code>a | b</code></td><td><a href="#unready">Unready</a></td></tr>`,
		"<ul>\n<li>one and more</li>\n<li>two &lt;b&gt;</li>\n</ul>", "<ol>\n<li>first</li>\n<li>second</li>\n</ol>",
		"<pre>projector position  # &lt;all&gt;\n\nprojector lag</pre>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s in\n%s", want, body)
		}
	}
}
