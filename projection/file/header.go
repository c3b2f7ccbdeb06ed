package file

import (
	"regexp"
	"slices"
	"strings"
)

// Reserved are the names of the built-in projections. A custom projection cannot use them, because
// names identify projections in positions, dead letters and the inbox.
var Reserved = []string{"account_balance", "account_statement", "daily_turnover"}

// OwnTables are the projector's own tables. A custom projection may not write or rebuild them.
var OwnTables = []string{
	"account_balance", "account_opening", "account_statement", "daily_turnover", "dlq_action", "dlq_action_lock", "inbox", "inbox_pruned", "park_overflow",
	"parked_event", "projection_account", "projection_file", "projection_park_overflow", "projection_parked_event",
	"projector_position", "projector_schema_version", "projector_source", "repair_policy", "repair_request",
}

// These are the keys of the lines in a header.
const (
	keyProjection = "projection"
	keyMode       = "mode"
	keyTypes      = "types"
	keyTables     = "tables"
)

var keys = []string{keyProjection, keyMode, keyTypes, keyTables}

var (
	// headerLine matches a key, which is one word before a colon, and its value. Other comments in
	// the header do not match.
	headerLine = regexp.MustCompile(`^--\s*([A-Za-z][\w-]*)\s*:(.*)$`)
	// goodName matches valid names of projections.
	goodName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	// goodTable matches a table name that PostgreSQL accepts without quotes. A name must not have a
	// schema, because a rebuild creates copies of the tables in another schema.
	goodTable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,62}$`)
)

// header reads the comments at the start of the file. The statements begin at the first line that
// is neither a comment nor empty.
func (f *parsing) header() {
	lines := map[string]int{}
	number, rest := 1, f.Text
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--") {
			break
		}
		if parts := headerLine.FindStringSubmatch(line); parts != nil {
			f.key(lines, number, parts[1], parts[2])
		}
		number, rest = number+1, after
	}
	f.SQL, f.Line = rest, number
	for _, key := range []string{keyProjection, keyMode, keyTypes} {
		if lines[key] == 0 {
			f.wrong(1, "the header has no line \"-- %s: …\"", key)
		}
	}
}

// key reads one line of the header. The map lines contains the line number of each key that was
// read before.
func (f *parsing) key(lines map[string]int, line int, key, text string) {
	value := strings.TrimSpace(text)
	if !slices.Contains(keys, key) {
		if value == "" || text != value {
			f.wrong(line, "the header has an unknown key %q; use %s, or write a comment without a colon after its first word",
				key, strings.Join(keys, ", "))
		}
		return
	}
	if first := lines[key]; first > 0 {
		f.wrong(line, "%s: is there twice, first in line %d", key, first)
		return
	}
	lines[key] = line
	switch key {
	case keyProjection:
		f.readName(line, value)
	case keyMode:
		f.Mode = Mode(value)
		if f.Mode != Once && f.Mode != Ordered {
			f.wrong(line, "mode: %q is unknown; use %s or %s", value, Once, Ordered)
		}
	case keyTypes:
		f.Types = f.list(line, key, value)
		slices.Sort(f.Types)
	case keyTables:
		f.TablesLine = line
		for _, table := range f.list(line, key, value) {
			name := strings.ToLower(table) // PostgreSQL also folds names to lower case
			switch {
			case slices.Contains(f.Tables, name):
				f.wrong(line, "tables: %q is there twice", name)
			case !goodTable.MatchString(table):
				f.wrong(line, "tables: %q is no name of a table; write it without its schema and without quotes, here and in the SQL", table)
			case slices.Contains(OwnTables, name):
				f.wrong(line, "tables: %s is the projector's own; name the tables that the statements write", table)
			}
			f.Tables = append(f.Tables, name)
		}
	}
}

func (f *parsing) readName(line int, name string) {
	f.Name = name
	switch {
	case !goodName.MatchString(name):
		f.wrong(line, "projection: %q is no name for a projection; it begins with a small letter and has at most 40 small letters, digits and underscores", name)
	case slices.Contains(Reserved, name):
		f.wrong(line, "projection: %s is built in; choose another name", name)
	}
}

// list returns the items of a value, which are separated by commas.
func (f *parsing) list(line int, key, value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		switch {
		case value == "":
			f.wrong(line, "%s: is empty", key)
		case item == "":
			f.wrong(line, "%s: has an empty item", key)
		case slices.Contains(items, item):
			f.wrong(line, "%s: %q is there twice", key, item)
		default:
			items = append(items, item)
		}
	}
	return items
}
