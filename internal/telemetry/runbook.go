package telemetry

import (
	"html/template"
	"net/http"
	"regexp"
	"strings"
)

// runbookPage is a documentation page as HTML. The page is embedded in the program. So links to the
// page work without internet, and its text belongs to the running version.
type runbookPage struct {
	Title string
	Body  template.HTML
}

// newRunbookPage renders the parts of Markdown that the runbook uses: headings, paragraphs, lists
// of one level, tables, and blocks of code. Headings have the same anchors as on GitHub.
func newRunbookPage(markdown string) runbookPage {
	page, body := runbookPage{}, strings.Builder{}
	for _, block := range blocks(markdown) {
		first := block[0]
		switch {
		case strings.HasPrefix(first, "```"):
			body.WriteString("<pre>" + template.HTMLEscapeString(strings.Join(block[1:len(block)-1], "\n")) + "</pre>\n")
		case strings.HasPrefix(first, "#"):
			marks, title, _ := strings.Cut(first, " ")
			level := string('0' + rune(min(len(marks), 6)))
			if level == "1" {
				page.Title = title
			}
			body.WriteString("<h" + level + ` id="` + anchor(title) + `">` + inline(title) + "</h" + level + ">\n")
		case strings.HasPrefix(first, "|"):
			table(&body, block)
		case item.MatchString(first):
			list(&body, block)
		default:
			body.WriteString("<p>" + inline(strings.Join(block, " ")) + "</p>\n")
		}
	}
	page.Body = template.HTML(body.String()) //nolint:gosec // G203: our own page, and every text of it is escaped
	return page
}

// blocks splits a page at its blank lines, headings and blocks of code.
func blocks(markdown string) (all [][]string) {
	var block []string
	end := func() {
		if len(block) > 0 {
			all, block = append(all, block), nil
		}
	}
	code := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, "\n")
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && !code:
			end()
			code, block = true, []string{line}
		case fence:
			block = append(block, line)
			end()
			code = false
		case code:
			block = append(block, line)
		case line == "":
			end()
		case strings.HasPrefix(line, "#"):
			end()
			all = append(all, []string{line})
		default:
			block = append(block, line)
		}
	}
	end()
	return all
}

var (
	item      = regexp.MustCompile(`^(- |\d+\. )`)
	cell      = regexp.MustCompile(`(?:\\.|[^|\\])+`)
	marked    = regexp.MustCompile("`([^`]+)`|\\*\\*(.+?)\\*\\*|\\[([^\\]]+)\\]\\(([^)]+)\\)")
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchor returns the anchor of a heading, as on GitHub.
func anchor(title string) string {
	return strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

func list(body *strings.Builder, lines []string) {
	tag := "ul"
	if !strings.HasPrefix(lines[0], "- ") {
		tag = "ol"
	}
	body.WriteString("<" + tag + ">\n")
	var text string
	for i, line := range lines {
		if item.MatchString(line) {
			line = item.ReplaceAllString(line, "")
		} else {
			line = text + " " + strings.TrimSpace(line)
		}
		if text = line; i+1 == len(lines) || item.MatchString(lines[i+1]) {
			body.WriteString("<li>" + inline(text) + "</li>\n")
		}
	}
	body.WriteString("</" + tag + ">\n")
}

// table writes a Markdown table as HTML. The first line has the headings, and the second line is a
// ruler.
func table(body *strings.Builder, lines []string) {
	body.WriteString("<table>\n")
	for i, line := range lines {
		if i == 1 {
			continue
		}
		body.WriteString("<tr>")
		for _, text := range cell.FindAllString(line, -1) {
			text = inline(strings.ReplaceAll(strings.TrimSpace(text), `\|`, "|"))
			if i == 0 {
				body.WriteString(`<th scope="col">` + text + "</th>")
			} else {
				body.WriteString("<td>" + text + "</td>")
			}
		}
		body.WriteString("</tr>\n")
	}
	body.WriteString("</table>\n")
}

// inline escapes a text and converts its code, bold words and links. For a link to a page that is
// not served here, only the text of the link is written.
func inline(text string) string {
	var out strings.Builder
	for {
		at := marked.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(template.HTMLEscapeString(text))
			return out.String()
		}
		out.WriteString(template.HTMLEscapeString(text[:at[0]]))
		switch {
		case at[2] >= 0:
			out.WriteString("<code>" + template.HTMLEscapeString(text[at[2]:at[3]]) + "</code>")
		case at[4] >= 0:
			out.WriteString("<b>" + inline(text[at[4]:at[5]]) + "</b>")
		default:
			words, to := inline(text[at[6]:at[7]]), text[at[8]:at[9]]
			if page, _, _ := strings.Cut(to, "#"); page == "" || page == "runbook.md" || page == "repairs.md" {
				words = `<a href="` + template.HTMLEscapeString(strings.Replace(to, ".md", "", 1)) + `">` + words + "</a>"
			}
			out.WriteString(words)
		}
		text = text[at[1]:]
	}
}

func (p *pages) documentation(markdown string) http.HandlerFunc {
	rendered := newRunbookPage(markdown)
	return func(w http.ResponseWriter, _ *http.Request) { p.html(w, "runbook.html", rendered) }
}
