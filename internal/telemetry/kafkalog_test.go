package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func newTestKafkaLogger(t *testing.T, level string) (kgo.Logger, *bytes.Buffer) {
	t.Helper()
	out := new(bytes.Buffer)
	log, err := NewLogger(out, false, level, "json")
	if err != nil {
		t.Fatal(err)
	}
	return KafkaLogger(log), out
}

func lines(out *bytes.Buffer) int { return strings.Count(out.String(), "\n") }

func TestKafkaLevelsAreDemoted(t *testing.T) {
	cases := []struct {
		level string
		asks  kgo.LogLevel
		lines int
	}{
		{"debug", kgo.LogLevelInfo, 3},
		{"info", kgo.LogLevelWarn, 2},
		{"warn", kgo.LogLevelWarn, 2},
		{"error", kgo.LogLevelError, 1},
	}
	for _, tc := range cases {
		l, out := newTestKafkaLogger(t, tc.level)
		if got := l.Level(); got != tc.asks {
			t.Errorf("%s: level %v, want %v", tc.level, got, tc.asks)
		}
		for _, level := range []kgo.LogLevel{kgo.LogLevelError, kgo.LogLevelWarn, kgo.LogLevelInfo, kgo.LogLevelDebug} {
			l.Log(level, "something "+level.String())
		}
		if got := lines(out); got != tc.lines {
			t.Errorf("%s: %d lines, want %d:\n%s", tc.level, got, tc.lines, out)
		}
	}
}

func TestSilencedLoggerSilencesTheClient(t *testing.T) {
	if got := KafkaLogger(quiet()).Level(); got != kgo.LogLevelNone {
		t.Errorf("level %v", got)
	}
}

func TestKafkaKeysGetTheNamesOfTheConventions(t *testing.T) {
	l, out := newTestKafkaLogger(t, "info")
	l.Log(kgo.LogLevelWarn, "unable to commit", "group", "g", "topic", topic, "partition", int32(3), "broker", "seed_0", "err", errors.New("x"), "took", time.Second, "odd")
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"msg": "kafka client: unable to commit", keyGroup: "g", keyTopic: topic, keyPartition: "3",
		"kafka.broker": "seed_0", keyErrorMessage: "x", "kafka.took": "1s",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

// dialError returns the client's error for a broker that is down. Each error has another local
// port, so the texts differ in their digits only.
func dialError(i int) error {
	return fmt.Errorf("read tcp 127.0.0.1:%d->10.0.0.%d:9092: connection reset by peer", 40000+i, i%3)
}

func TestAnOutageOfTheClusterFitsOnOneScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := newTestKafkaLogger(t, "info")
		for i := range 200 { // 10 s with three brokers and twenty attempts per second
			l.Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", fmt.Sprintf("10.0.0.%d:9092", i%3), "broker", i%3, "err", dialError(i))
			l.Log(kgo.LogLevelError, "unable to request api versions", "broker", i%3, "err", dialError(i))
			<-time.After(50 * time.Millisecond)
		}
		if got := lines(out); got != 4 {
			t.Errorf("%d lines, want 2 of each:\n%s", got, out)
		}
		if !strings.Contains(out.String(), `"`+keySuppressed+`":99`) {
			t.Errorf("what was held back is not counted:\n%s", out)
		}
	})
}

func TestALongOutageIsLoggedAtAFallingRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := newTestKafkaLogger(t, "info")
		for range 3600 {
			l.Log(kgo.LogLevelWarn, "unable to open connection to broker", "err", dialError(1))
			<-time.After(time.Second)
		}
		// The lines are written at 0, 5, 15, 35, 75, 155 and 315 s, and then every five minutes.
		if got := lines(out); got < 15 || got > 20 {
			t.Errorf("%d lines in an hour", got)
		}
	})
}

func TestNewProblemsAreLoggedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, out := newTestKafkaLogger(t, "info")
		say := func(topic string, err error) {
			l.Log(kgo.LogLevelWarn, "metadata", "topic", topic, "err", err)
			<-time.After(time.Millisecond)
		}
		say("a", errors.New("x"))
		say("a", errors.New("x"))
		say("b", errors.New("x")) // another topic
		say("a", errors.New("y")) // another error
		if got := lines(out); got != 3 {
			t.Errorf("%d lines, want 3:\n%s", got, out)
		}
		<-time.After(kafkaQuiet)
		say("a", errors.New("x")) // a new incident
		if got := lines(out); got != 4 {
			t.Errorf("%d lines after the quiet time, want 4:\n%s", got, out)
		}
	})
}

func TestKafkaLoggerIsSafeForConcurrentUse(t *testing.T) {
	l := KafkaLogger(slog.New(slog.NewTextHandler(new(bytes.Buffer), nil))) // the handler locks its writer
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				l.Log(kgo.LogLevelWarn, "x", "topic", fmt.Sprint(i))
			}
		})
	}
	wg.Wait()
}
