package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogFormats(t *testing.T) {
	cases := []struct {
		name     string
		terminal bool
		format   string
		noColor  string
		term     string
		json     bool
		colour   bool
	}{
		{"default on a terminal", true, "", "", "xterm", false, true},
		{"default elsewhere", false, "", "", "xterm", true, false},
		{"text elsewhere has no colours", false, "text", "", "xterm", false, false},
		{"NO_COLOR on a terminal", true, "text", "1", "xterm", false, false},
		{"NO_COLOR that says nothing", true, "text", "", "xterm", false, true},
		{"a dumb terminal", true, "", "", "dumb", false, false},
		{"json on a terminal", true, "json", "", "xterm", true, false},
		{"upper case", true, "JSON", "", "xterm", true, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tc.noColor)
			t.Setenv("TERM", tc.term)
			var out bytes.Buffer
			log, err := NewLogger(&out, tc.terminal, "info", tc.format)
			if err != nil {
				t.Fatal(err)
			}
			log.Warn("batch written", keySuppressed, 3)
			if got := json.Valid(out.Bytes()); got != tc.json {
				t.Errorf("JSON is %v in %q", got, out.String())
			}
			if got := strings.Contains(out.String(), "\x1b["); got != tc.colour {
				t.Errorf("colour is %v in %q", got, out.String())
			}
			if !strings.Contains(out.String(), "batch written") {
				t.Errorf("the message is missing in %q", out.String())
			}
		})
	}
}

func TestLogLevels(t *testing.T) {
	for level, want := range map[string]int{"debug": 4, "info": 3, "": 3, "warn": 2, "error": 1, "WARN": 2} {
		var out bytes.Buffer
		log, err := NewLogger(&out, false, level, "json")
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("x")
		log.Info("x")
		log.Warn("x")
		log.Error("x")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("level %q writes %d lines, want %d", level, got, want)
		}
	}
}

func TestUnknownNamesAreRefusedWithTheFlagAndItsValues(t *testing.T) {
	cases := []struct{ level, format, want string }{
		{"loud", "", `--log-level (LOG_LEVEL): unknown level "loud"; it takes debug, info, warn or error`},
		{"", "xml", `--log-format (LOG_FORMAT): unknown format "xml"; it takes text or json`},
	}
	for _, tc := range cases {
		log, err := NewLogger(&bytes.Buffer{}, false, tc.level, tc.format)
		if err == nil || err.Error() != tc.want || log != nil {
			t.Errorf("%q %q: %v", tc.level, tc.format, err)
		}
	}
}

func TestJSONAttributes(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, false, "", "")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("retrying", slog.Int64(keyOffset, 17), slog.Duration("next", 1500*time.Millisecond), Err(errors.New("refused")), Err(nil))
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"messaging.kafka.offset": 17.0, "next": "1.5s",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if !strings.Contains(out.String(), `"exception.message":"refused"`) {
		t.Errorf("the error is missing in %s", out.String())
	}
}
