package errclass

import (
	_ "embed" // needed for go:embed
	"slices"
	"strings"
	"sync"
)

// sqlstateList has a line for each SQLSTATE, with its class and PostgreSQL's name. Only the names
// are read here. A test compares the classes with those of sqlstateClass.
//
//go:embed sqlstates.txt
var sqlstateList string

// conditions returns PostgreSQL's names for the codes in classes 22, 23 and P0. The names replace
// the messages of these codes, because a message may contain a value.
var conditions = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for line := range strings.Lines(sqlstateList) {
		if fields := strings.Fields(line); len(fields) == 3 && slices.Contains([]string{"22", "23", "P0"}, fields[0][:2]) {
			names[fields[0]] = fields[2]
		}
	}
	return names
})
