package process

import (
	"context"
	"fmt"
	"net"
	"strings"
	"unicode"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/reader"
	"projector/internal/retry"
	"projector/internal/telemetry"
	"projector/readmodel"
	"projector/readmodel/accountdb"
)

// readFlags are the flags of the HTTP server for readers, which are clients that read accounts.
type readFlags struct {
	ReadListen    string `env:"READ_LISTEN_ADDR" placeholder:"ADDR" group:"HTTP" help:"Address for readers: GET /v1/accounts/ID?min_version=N&wait=5s returns an account, once it has reached that version. Beyond this machine it needs --read-token-file. Off by default."`
	ReadTokenFile string `env:"READ_TOKEN_FILE" type:"path" placeholder:"FILE" group:"HTTP" help:"File that holds the token readers send as Authorization: Bearer, of at least 16 bytes. It may change."`
	ReadBalances  bool   `env:"READ_BALANCES" group:"HTTP" help:"Include balance, currency and status in the response to readers."`
}

const (
	readListenFlag = "--read-listen (READ_LISTEN_ADDR)"
	readTokenFlag  = "--read-token-file (READ_TOKEN_FILE)" //nolint:gosec // G101: the name of a flag
)

func (f *readFlags) validate(projection string) error {
	switch {
	case f.ReadListen == "" && f.ReadBalances:
		return exit.Usagef("--read-balances (READ_BALANCES): there are no readers without %s", readListenFlag)
	case f.ReadListen == "":
		return nil
	}
	if projection != readmodel.BalanceName {
		return exit.Usagef("%s: answers from %s, which --projection=%s does not write; give it to the instances with --projection=%[2]s",
			readListenFlag, readmodel.BalanceName, projection)
	}
	host, _, err := net.SplitHostPort(f.ReadListen)
	switch {
	case err != nil:
		return exit.Usagef("%s: is not HOST:PORT, e.g. 127.0.0.1:8082", readListenFlag)
	case f.ReadTokenFile == "" && !flags.Loopback(host):
		return exit.Usagef("%s: %s can be reached from other machines; give %s, or listen on 127.0.0.1", readListenFlag, f.ReadListen, readTokenFlag)
	case f.ReadTokenFile != "":
		if _, err := f.token(); err != nil {
			return exit.WrongUsage(err)
		}
	}
	return nil
}

func (f *readFlags) token() (string, error) {
	token, err := flags.FromFile(readTokenFlag, f.ReadTokenFile)
	// HTTP removes white space around the value of a header, so no client could send a token with it.
	token = strings.TrimSpace(token)
	switch {
	case err != nil:
	case len(token) < leastToken:
		err = fmt.Errorf("%s: the token has fewer than %d bytes and can be guessed; make one, as by: openssl rand -hex 32", readTokenFlag, leastToken)
	case strings.ContainsFunc(token, unicode.IsControl):
		err = fmt.Errorf("%s: the token has a line break or another control character, which no client can send; the file holds one token", readTokenFlag)
	}
	return token, err
}

// leastToken is the minimum length of a token in bytes.
const leastToken = 16

// makeReaders makes the server of readers, unless it is off. The server has a separate pool,
// because the consumer uses its connections for seconds while it catches up. The pool has a second
// connection for the time in which the first one does not answer and is being closed.
func (p *Process) makeReaders(ctx context.Context, traced traced) (err error) {
	f := p.cmd.readFlags
	if f.ReadListen == "" {
		return nil
	}
	if p.reading, err = p.cmd.Pool(ctx, append(traced.database, readmodel.WithConns(2))...); err != nil {
		return err
	}
	cfg := reader.Config{
		Addr: f.ReadListen, Balances: f.ReadBalances, Log: p.log,
		Load: func(ctx context.Context, ids []string) ([]accountdb.Current, error) {
			return accountdb.LoadCurrent(ctx, p.reading, ids)
		},
		Queried: retry.Throttle(p.log, "read accounts for readers", telemetry.KeyDependency, telemetry.DependencyPostgres).Note,
	}
	if f.ReadTokenFile != "" {
		reading := retry.Throttle(p.log, "read the readers' token")
		cfg.Token = func() (string, error) {
			token, err := f.token()
			reading.Note(err, 0)
			return token, err
		}
	}
	p.readers = reader.NewServer(cfg)
	return nil
}
