//go:build faults

package faulttest

import (
	"bytes"
	"strings"

	"projector/e2e/process"
	"projector/internal/testbank"
)

// command is an operator's command that runs while the replicas run.
type command struct {
	*process.Process
	out *bytes.Buffer // complete when the command has ended
}

func (s *scene) command(args ...string) *command {
	s.t.Helper()
	return s.commandAt(s.url, args...)
}

// commandAt starts a command with this URL of the database.
func (s *scene) commandAt(url string, args ...string) *command {
	s.t.Helper()
	c := &command{out: &bytes.Buffer{}}
	binary := process.Binary{Path: must(projector())(s.t), Secrets: []string{s.password(), testbank.Marker}, Stdout: c.out}
	env := []string{"DATABASE_URL=" + url, "KAFKA_BROKERS=" + strings.Join(s.addrs, ",")}
	flags := []string{"--topic=" + s.reader.Topic, "--group=" + s.reader.Group, "--output=json"}
	if args[0] != "resume" { // resume reads no events
		flags = append(flags, "--ignore-event-types="+testbank.IgnoredType)
	}
	c.Process = binary.Launch(s.t, env, append(args, flags...)...)
	return c
}
