package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"projector/internal/devstack/devtest"
	"projector/projection/event"
)

func TestWhatATerminalMayShow(t *testing.T) {
	tests := map[string]struct {
		term, noColor  string
		colours, moves bool
	}{
		"a terminal":             {"xterm-256color", "", true, true},
		"one without colours":    {"xterm-256color", "1", false, true},
		"one that is dumb":       {"dumb", "", false, false},
		"one of an unknown kind": {"", "", true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", tt.term)
			t.Setenv("NO_COLOR", tt.noColor)
			tty := devtest.Terminal(t)
			if got := NewTable(tty, "").colours; got != tt.colours {
				t.Errorf("a table has colours: %v", got)
			}
			if got := NewProgress(tty, "").terminal; got != tt.moves {
				t.Errorf("progress is written over: %v", got)
			}
		})
	}
}

func TestNoColoursInAFile(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	if NewTable(&out, "").colours || NewProgress(&out, "").terminal {
		t.Error("a file is taken for a terminal")
	}
}

// TestLogAndProgressShareATerminal shows that a log line begins on a cleared line. After End, the
// progress is not drawn again and log lines are dropped.
func TestLogAndProgressShareATerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, "read")
	p.terminal = true
	p.Step("produced")
	log := func(line string) {
		if n, err := p.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	log("a warning\n")
	p.last = time.Time{}
	p.Update(1, 4)
	p.End()
	log("too late\n")
	if want := "produced\r\r\x1b[Ka warning\nproduced: 1 of 4 (25 %)\r\r\x1b[K"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestOnlyTheHeaderOfATableStandsOut(t *testing.T) {
	for colours, want := range map[bool]string{
		false: "A    B\na    b\n",
		true:  "\x1b[1mA    B\x1b[0m\na    b\n",
	} {
		var out strings.Builder
		table := NewTable(&out, "", Column{Name: "A", Width: 3}, Column{Name: "B"})
		table.colours = colours
		table.Row("a", "b")
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestATableFitsAndMovesNoCursor(t *testing.T) {
	got := printed(t, 20, [][]string{{"a\x1b[2J\n", "7", "a text that is much too long for it"}},
		Left("A", 5), Right("B", 5), Left("C", 0))
	if want := "A       B  C\na\uFFFD[2J\uFFFD  7  a text t…\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The function printed returns a table as a terminal shows it.
func printed(t interface{ Fatal(args ...any) }, limit int, rows [][]string, columns ...Column) string {
	var out strings.Builder
	table := NewTable(&out, columns[0].Name, columns...)
	table.limit = limit
	for _, row := range rows {
		cells := make([]any, len(row))
		for i := range row {
			cells[i] = row[i]
		}
		table.Row(cells...)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// gapColumns are the columns of the command gaps.
func gapColumns() []Column {
	return []Column{
		Left("ACCOUNT", 20), Right("EXPECTED", 10), Right("RECEIVED", 10).Optional(),
		Left("CLASS", 20), Right("WAITING", 7), Left("AGE", 6),
	}
}

func TestColumnsAreLeftOutBeforeAnIDIsCut(t *testing.T) {
	const id, long = "7f9c2ba4-e88f-4a52-8c31-0d1b5c2f6a11", "an account whose id is as long as those who made it up liked it to be, and longer"
	for _, test := range []struct{ id, class, shown, left string }{
		{"acc-1", "version_gap", "acc-1", ""},
		{id, "version_gap", id, "RECEIVED"},
		{id, "rejected_by_database", id[:31] + "…", "RECEIVED"},
		{long, "version_gap", long[:40] + "…", "RECEIVED"},
	} {
		got := printed(t, 80, [][]string{{test.id, "2", "3", test.class, "1", "9h17m"}}, gapColumns()...)
		lines := strings.SplitAfter(got, "\n")
		if !strings.HasPrefix(lines[1], test.shown+" ") || !strings.Contains(lines[1], "  "+test.class+" ") || !strings.HasSuffix(lines[1], "  9h17m\n") {
			t.Errorf("%s %s: the row is\n%s", test.id, test.class, lines[1])
		}
		if noted := strings.Contains(got, "no room for "+test.left); noted != (test.left != "") || strings.Contains(lines[0], "RECEIVED") == noted {
			t.Errorf("%s %s: wrong columns are left out:\n%s", test.id, test.class, got)
		}
	}
}

// TestColumnsAreAligned shows that columns are aligned on the terminal for ids in several scripts,
// and that no row is wider than the terminal.
func TestColumnsAreAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune("a7-é口座좌Ａé💶\n"))), 1, 4).Draw(t, "ids")
		limit := rapid.IntRange(80, 120).Draw(t, "limit")
		var rows [][]string
		for _, id := range ids {
			rows = append(rows, []string{id, "9223372036854775807", "17", "version_gap", "1", "9h17m"})
		}
		lines := strings.Split(strings.TrimSpace(printed(t, limit, rows, gapColumns()...)), "\n")
		header, _, _ := strings.Cut(lines[0], "  CLASS")
		for _, line := range lines[1:] {
			if shownWidth(line) > limit {
				t.Fatalf("%d wide: %s", shownWidth(line), line)
			}
			before, _, found := strings.Cut(line, "  version_gap")
			if !strings.HasPrefix(line, "(") && (!found || shownWidth(before) != len(header)) {
				t.Fatalf("not straight: %q below %q", line, lines[0])
			}
		}
	})
}

// replayColumns are the columns of `dlq replay`.
func replayColumns() []Column {
	return []Column{
		Left("PLAN", 10), Left("ACCOUNT", 14), Right("VERSION", 7), Left("CLASS", 20).Optional(), Left("DLQ", 9), Text("WHY"),
	}
}

func TestATextIsFoldedAndNotCut(t *testing.T) {
	const why = "event 7f9c2ba4 credits JPY, the account has EUR since its version 1"
	replayed := func(account, why string) []string {
		return []string{"poison", account, "17", "currency_mismatch", "0/42", why}
	}
	for name, test := range map[string]struct {
		limit int
		rows  [][]string
		want  string
	}{
		"beside the row where there is room": {100, [][]string{replayed("acc-1", why), replayed("acc-2", "-")}, "" +
			"PLAN    ACCOUNT  VERSION  CLASS              DLQ   WHY\n" +
			"poison  acc-1         17  currency_mismatch  0/42  event 7f9c2ba4 credits JPY, the account has EUR\n" +
			"                                                   since its version 1\n" +
			"poison  acc-2         17  currency_mismatch  0/42  -\n"},
		"else below it": {80, [][]string{replayed("acc-1", why), replayed("acc-2", "-")}, "" +
			"PLAN        ACCOUNT         VERSION  CLASS                 DLQ\n" +
			"    WHY\n" +
			"poison      acc-1                17  currency_mismatch     0/42\n" +
			"    event 7f9c2ba4 credits JPY, the account has EUR since its version 1\n" +
			"poison      acc-2                17  currency_mismatch     0/42\n"},
		"a short one where it always was": {80, [][]string{replayed("acc-1", "too late")}, "" +
			"PLAN        ACCOUNT         VERSION  CLASS                 DLQ        WHY\n" +
			"poison      acc-1                17  currency_mismatch     0/42       too late\n"},
		"before an id is cut or a column left out": {80, [][]string{replayed("7f9c2ba4-e88f-4a52-8c31-0d1b5c2f6a11", "why")}, "" +
			"PLAN      ACCOUNT                               VERSION  CLASS              DLQ\n" +
			"    WHY\n" +
			"poison    7f9c2ba4-e88f-4a52-8c31-0d1b5c2f6a11       17  currency_mismatch  0/42\n" +
			"    why\n"},
		"below it where a column is left out, too": {80, [][]string{{"poison", "7f9c2ba4-e88f-4a52-8c31-0d1b5c2f6a11", "9223372036854775807", "version_gap", "0/42", "why"}}, "" +
			"PLAN        ACCOUNT                                           VERSION  DLQ\n" +
			"    WHY\n" +
			"poison      7f9c2ba4-e88f-4a52-8c31-0d1b5c2f6a11  9223372036854775807  0/42\n" +
			"    why\n" +
			"(80 columns have no room for CLASS)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := printed(t, test.limit, test.rows, replayColumns()...); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// TestTextsAreShownInFull shows that no text is missing and no line is wider than the terminal, for
// texts in several scripts.
func TestTextsAreShownInFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune("ab -é口좌💶"))), 1, 4).Draw(t, "texts")
		limit, account := rapid.IntRange(80, 120).Draw(t, "limit"), rapid.SampledFrom([]string{"1", strings.Repeat("7", 36)}).Draw(t, "account")
		var rows [][]string
		for _, text := range texts {
			rows = append(rows, []string{"poison", account, "17", "version_gap", "0/42", strings.Repeat(text+"b", 9)})
		}
		got := printed(t, limit, rows, replayColumns()...)
		for line := range strings.Lines(got) {
			if shownWidth(strings.TrimSuffix(line, "\n")) > limit {
				t.Fatalf("wider than %d: %s", limit, line)
			}
		}
		letters := func(text string) string { return strings.Join(strings.Fields(text), "") }
		all := letters(got)
		for _, row := range rows {
			var found bool
			if _, all, found = strings.Cut(all, letters(row[5])); !found {
				t.Fatalf("%q is not in\n%s", row[5], got)
			}
		}
	})
}

func TestTimesBeyondTheYear9999AreWritten(t *testing.T) {
	for want, at := range map[string]time.Time{
		"10000-01-01T00:00:00Z": time.UnixMicro(253402300800_000000), "-0001-12-31T23:00:00Z": time.Date(-1, 12, 31, 23, 0, 0, 0, time.UTC),
	} {
		if got := TimeText(at); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestOrDash(t *testing.T) {
	zero, number, none := int64(0), json.Number("-1.50"), (*json.Number)(nil)
	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, "-"},
		{"", "-"},
		{none, "-"},
		{new(""), "-"},
		{"a", "a"},
		{new("a"), "a"},
		{event.VersionGap, "version_gap"},
		{int32(0), "0"},
		{&zero, "0"},
		{-7, "-7"},
		{number, "-1.50"},
		{&number, "-1.50"},
	} {
		if got := OrDash(test.value); got != test.want {
			t.Errorf("%#v: got %q, want %q", test.value, got, test.want)
		}
	}
}

// TestNumberOrNull shows that the result can always be encoded in JSON.
func TestNumberOrNull(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-12.50": "-12.50", "0.00": "0.00",
		"": "null", "-": "null", "1-2": "null", "007": "null", ".5": "null", "1.": "null", "NaN": "null", "Infinity": "null", "null": "null", "1x": "null",
	} {
		if got, err := json.Marshal(NumberOrNull(&text)); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if NumberOrNull(nil) != nil {
		t.Error("nil is a number")
	}
}
