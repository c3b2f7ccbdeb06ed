package operators_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/e2e/wait"
)

// exactWithin is the time limit after the last record within which the rows must be right. It is
// long, because many waiting events take several transactions.
const exactWithin = time.Minute

// The method exact expects the rows of the reader's projection to equal those of its oracle.
func (s *stage) exact(r *reader, when string) {
	s.t.Helper()
	holds := func() {
		wait.Until(s.t, exactWithin, fmt.Sprintf("%s: %s holds what its oracle says", when, r.name), func() string {
			if o := r.ordered(); o != nil && s.differences(r, r.want()) != "" {
				if err := s.limited(r); err != nil {
					return err.Error()
				}
			}
			if u, is := r.oracle.(*unordered); is && len(u.open) > 0 {
				got, err := s.rows(r)
				if err != nil {
					return err.Error()
				}
				u.choose(got)
			}
			if s.fetching && r == s.readers[0] {
				r.ordered().fetchAll(s.producer.published)
			}
			return s.differences(r, r.want())
		})
	}
	holds()
	if o := r.ordered(); o != nil {
		if s.readAgain(r) {
			holds()
		}
		for _, a := range o.accounts {
			a.floor = a.version
		}
	}
}

func (s *stage) rows(r *reader) (map[string]string, error) {
	rows, err := s.db.Query(s.t.Context(), r.query)
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	var key, row string
	_, err = pgx.ForEachRow(rows, []any{&key, &row}, func() error { got[key] = row; return nil })
	return got, err
}

func (s *stage) differences(r *reader, want map[string]string) string {
	got, err := s.rows(r)
	if err != nil {
		return err.Error()
	}
	return different(got, want, s.events)
}

// The function different describes the first differences, or returns "".
func different(got, want map[string]string, more func(account string) string) string {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			wrong = append(wrong, fmt.Sprintf("%s: got %q, want %q%s", key, got[key], want[key], more(key)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[key]; !known {
			wrong = append(wrong, fmt.Sprintf("%s: must not exist: %q%s", key, got[key], more(key)))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%d rows differ, the first of them:\n%s", len(wrong), strings.Join(wrong[:min(4, len(wrong))], "\n"))
}

// events describes the last events of an account in the topic.
func (s *stage) events(key string) string {
	id, _, _ := strings.Cut(key, " ")
	var lines []string
	for _, records := range s.log {
		for _, e := range records {
			if e.account == id {
				lines = append(lines, "\n      "+e.text())
			}
		}
	}
	return strings.Join(lines[max(0, len(lines)-40):], "")
}
