//go:build deploy

package deploy_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The data of testdata/night.txt begins and ends at these times.
var (
	nightStart = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	nightEnd   = nightStart.Add(8 * time.Hour)
)

const nightStep = 30 * time.Second

// clock converts a time HH:MM of testdata/night.txt, which is before or after midnight, to a date
// and time.
func clock(text string) (time.Time, error) {
	of, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, err
	}
	at := time.Date(2026, 1, 1, of.Hour(), of.Minute(), 0, 0, time.UTC)
	if at.Before(nightStart) {
		at = at.AddDate(0, 0, 1)
	}
	return at, nil
}

// change is how a series changes from a given time on.
type change struct {
	at    time.Time
	how   byte // '=' jumps to value, '~' moves to value in a straight line, '+' grows by value each second, '-' ends
	value float64
}

// scripted is a series of testdata/night.txt.
type scripted struct {
	name    string // with its labels
	changes []change
}

// night reads testdata/night.txt.
func night(t *testing.T) []scripted {
	t.Helper()
	var all []scripted
	for line := range strings.Lines(read(t, "testdata/night.txt")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, script, found := strings.Cut(line, "} ")
		if !found {
			t.Fatalf("no labels and changes: %s", line)
		}
		s := scripted{name: name + "}"}
		for _, text := range strings.Fields(script) {
			c, err := parseChange(text)
			if err != nil {
				t.Fatalf("%q of %s: %v", text, line, err)
			}
			s.changes = append(s.changes, c)
		}
		all = append(all, s)
	}
	return all
}

var changeText = regexp.MustCompile(`^(\d\d:\d\d)([=~+-])(.*)$`)

func parseChange(text string) (change, error) {
	parts := changeText.FindStringSubmatch(text)
	if parts == nil {
		return change{}, fmt.Errorf("is not HH:MM, one of = ~ + - and a number")
	}
	at, err := clock(parts[1])
	c := change{at: at, how: parts[2][0]}
	switch {
	case err != nil:
	case c.how == '-':
	case parts[3] == "now":
		c.value = float64(at.Unix())
	default:
		c.value, err = strconv.ParseFloat(parts[3], 64)
	}
	return c, err
}

// value returns the value of the series at a time, or false if it has none.
func (s scripted) value(at time.Time) (float64, bool) {
	var value, rate float64
	var since time.Time
	exists := false
	for _, c := range s.changes {
		if c.at.After(at) {
			if c.how == '~' {
				value += (c.value - value) * float64(at.Sub(since)) / float64(c.at.Sub(since))
				return value, exists
			}
			break
		}
		value += rate * c.at.Sub(since).Seconds()
		since, rate, exists = c.at, 0, true
		switch c.how {
		case '=', '~':
			value = c.value
		case '+':
			rate = c.value
		case '-':
			exists = false
		}
	}
	return value + rate*at.Sub(since).Seconds(), exists
}

// startNight runs a Prometheus whose database holds the data of testdata/night.txt.
func startNight(t *testing.T) *prometheus {
	t.Helper()
	folder := t.TempDir()
	samples, err := os.Create(filepath.Join(folder, "night.om"))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(samples)
	for _, s := range night(t) {
		for at := nightStart; !at.After(nightEnd); at = at.Add(nightStep) {
			if value, exists := s.value(at); exists {
				_, _ = fmt.Fprintf(out, "%s %g %d\n", s.name, value, at.Unix()) // Flush returns the error
			}
		}
	}
	_, _ = fmt.Fprintln(out, "# EOF")
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := samples.Close(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(folder, "data")
	if _, err := run(t.Context(), folder, "promtool", "tsdb", "create-blocks-from", "openmetrics", samples.Name(), data); err != nil {
		t.Fatal(err)
	}
	return launchPrometheus(t, folder, "global: {}\n", "projector_ready @ "+strconv.FormatInt(nightEnd.Unix(), 10))
}

func TestScriptOfANight(t *testing.T) {
	var s scripted
	for text := range strings.FieldsSeq("22:00=2 23:00=4 00:00~10 00:00=1 01:00+2 01:01+0 02:00=now 03:00-") {
		c, err := parseChange(text)
		if err != nil {
			t.Fatal(err)
		}
		s.changes = append(s.changes, c)
	}
	for text, want := range map[string]float64{
		"22:00": 2, "22:59": 2, "23:00": 4, "23:30": 7, "00:00": 1, "00:59": 1, "01:01": 121, "01:30": 121,
		"02:30": float64(nightStart.Add(4 * time.Hour).Unix()),
	} {
		at, err := clock(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, exists := s.value(at); !exists || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, exists, want)
		}
	}
	if got, exists := s.value(nightEnd); exists {
		t.Errorf("at the end: %v", got)
	}
}
