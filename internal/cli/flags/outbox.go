package flags

import (
	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/outbox"
)

// OutboxFlags are the flags of the producer's outbox and the query. The password file is read again
// for each new connection.
type OutboxFlags struct {
	OutboxURL          string `json:"-" name:"outbox-url" env:"OUTBOX_URL" type:"url" placeholder:"URL" group:"Outbox" help:"The PostgreSQL with the producer's outbox, which is queried for missing events, e.g. postgres://reader@core:5432/core. It is only read."`
	OutboxPasswordFile string `json:"-" env:"OUTBOX_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Outbox" help:"File that holds the password, instead of the URL."`
	OutboxQuery        string `json:"-" env:"OUTBOX_QUERY" placeholder:"SQL" group:"Outbox" help:"Query that returns key, value and, where the format needs them, headers (a JSON object) of the events with the account ids $1 (text[]) and versions $2 (bigint[])."`
}

const (
	outboxURLFlag          = "--outbox-url (OUTBOX_URL)"
	outboxPasswordFileFlag = "--outbox-password-file (OUTBOX_PASSWORD_FILE)"
	outboxQueryFlag        = "--outbox-query (OUTBOX_QUERY)"
)

// Outbox returns the client of the outbox, or nil without an outbox. It does not connect yet.
func (f *OutboxFlags) Outbox() (*outbox.Client, error) {
	switch {
	case f.OutboxURL == "" && f.OutboxQuery != "":
		return nil, exit.Usagef("%s: needs --outbox-url", outboxQueryFlag)
	case f.OutboxURL == "" && f.OutboxPasswordFile != "":
		return nil, exit.Usagef("%s: needs --outbox-url", outboxPasswordFileFlag)
	case f.OutboxURL == "":
		return nil, nil
	}
	password, err := passwordFile(outboxPasswordFileFlag, f.OutboxPasswordFile, outboxURLFlag, f.OutboxURL)
	if err != nil {
		return nil, err
	}
	if err := outbox.CheckURL(f.OutboxURL); err != nil {
		return nil, exit.Usagef("%s: %s", outboxURLFlag, errclass.Safe(err))
	}
	if err := outbox.CheckQuery(f.OutboxQuery); err != nil {
		return nil, exit.Usagef("%s: %w", outboxQueryFlag, err)
	}
	return &outbox.Client{URL: f.OutboxURL, Query: f.OutboxQuery, Password: password}, nil
}
