package telemetry

import (
	"fmt"
	"strings"
	"testing"
)

func TestPartitionsWithTheSameReasonAreOneLine(t *testing.T) {
	h := NewHealth()
	h.Started()
	storm := func(p int) string {
		return fmt.Sprintf("the breaker is open, then type: projector resume --partition=%d --reason=TEXT --yes", p)
	}
	for _, p := range []int{0, 1, 2, 4, 10} {
		h.Fail(fmt.Sprintf("partition account-events/%d", p), storm(p))
	}
	h.Fail("partition account-events/3", "paused by ada")
	h.Fail("partition other/3", storm(3))
	h.Fail("database", "connect")
	server := newServer("127.0.0.1:0", NewRegistry(), h, Page{}, quiet())
	text := get(t, server, "/readyz").body
	for _, want := range []string{
		"partitions account-events/0-2, 4, 10: the breaker is open, then type: projector resume --partition=N --reason",
		"partition account-events/3: paused by ada", "partition other/3: " + storm(3), "database: connect",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines != 4 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	if page := get(t, server, "/").body; strings.Count(page, "the breaker is open") != 2 {
		t.Errorf("the page repeats it:\n%s", page)
	}
	if all := get(t, server, "/readyz?format=json").body; strings.Count(all, "the breaker is open") != 6 {
		t.Errorf("JSON has one reason for each partition:\n%s", all)
	}
}
