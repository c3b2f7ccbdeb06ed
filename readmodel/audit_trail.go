package readmodel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// AuditRow is a row of dlq_action in the form in which it is shown, also as JSON. A nil field is
// unknown or does not apply to the action.
type AuditRow struct {
	ID             int64     `json:"id"`
	At             time.Time `json:"at"` // UTC
	Action         string    `json:"action"`
	Group          *string   `json:"group"` // consumer group
	Projection     *string   `json:"projection"`
	Topic          *string   `json:"topic"` // source topic, or the topic of the position
	Partition      *int32    `json:"partition"`
	Offset         *int64    `json:"offset"`
	DLQPartition   *int32    `json:"dlq_partition"`
	DLQOffset      *int64    `json:"dlq_offset"`
	AccountID      *string   `json:"account_id"`
	Version        *int64    `json:"version"`
	Class          *string   `json:"class"`
	RequestID      *int64    `json:"request_id"`   // request that was approved
	RequestedBy    *string   `json:"requested_by"` // login that made the request
	Actor          string    `json:"actor"`
	DBUser         *string   `json:"db_user"` // login of the connection; Actor may name another person
	Reason         *string   `json:"reason"`
	Result         string    `json:"result"`
	Altered        bool      `json:"altered"` // the replayed key, value or headers differ from the dead letter's
	ValueSHA256    *string   `json:"value_sha256"`
	OriginalSHA256 *string   `json:"original_sha256"`
	ApprovedBy     *string   `json:"approved_by"`
	Hash           *string   `json:"hash"`
}

// AuditFilter selects rows of the audit trail. A zero field does not filter.
type AuditFilter struct {
	AccountID, Action, Actor string
	Since, Until             time.Time
}

// AuditTrail calls fn with each selected row, oldest first.
func AuditTrail(ctx context.Context, pool *pgxpool.Pool, f AuditFilter, fn func(*AuditRow) error) error {
	var row AuditRow
	args := []any{f.AccountID, f.Action, f.Actor, timeOrNull(f.Since), timeOrNull(f.Until)}
	return Each(ctx, pool, "read the audit trail", sql.Query("audit_list"), args, []any{
		&row.ID, &row.At, &row.Action, &row.Group, &row.Projection, &row.Topic, &row.Partition, &row.Offset,
		&row.DLQPartition, &row.DLQOffset, &row.AccountID, &row.Version, &row.Class, &row.RequestID, &row.RequestedBy,
		&row.Actor, &row.DBUser, &row.Reason, &row.Result,
		&row.Altered, &row.ValueSHA256, &row.OriginalSHA256, &row.ApprovedBy, &row.Hash,
	}, func() error {
		row.At = row.At.UTC()
		return fn(&row)
	})
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// AuditFinding is an error in the hash chain of the audit trail.
type AuditFinding struct {
	ID   int64 // of the row where the error is visible
	What string
}

// AuditReport is the result of a check of the hash chain.
type AuditReport struct {
	Rows      int64
	Head      string // hash of the last row; empty if there is no row
	HeadFound bool   // a row has the expected hash
	Findings  []AuditFinding
}

// VerifyAudit computes the hashes of the audit trail again and reports where they differ. It
// computes them in this process, not in PostgreSQL. The parameter expected is a hash that somebody
// wrote down earlier. Only with this hash can VerifyAudit detect that the last rows of the trail
// were removed.
func VerifyAudit(ctx context.Context, pool *pgxpool.Pool, expected string) (AuditReport, error) {
	var (
		report AuditReport
		id     int64
		chain  *int64
		hash   *string
		fields []*string
		last   = auditLink{}
	)
	err := Each(ctx, pool, "read the audit trail", sql.Query("audit_chain"), nil, []any{&id, &chain, &hash, &fields}, func() error {
		report.Rows++
		if chain == nil || hash == nil {
			report.Findings = append(report.Findings, AuditFinding{id, "the row is not in the chain of hashes"})
			return nil
		}
		what := last.check(*chain, *hash, fields)
		if what != "" {
			report.Findings = append(report.Findings, AuditFinding{id, what})
		}
		last = auditLink{*chain, *hash}
		report.HeadFound = report.HeadFound || *hash == expected
		return nil
	})
	report.Head = last.hash
	return report, err
}

// auditLink is the number of a row in the chain, and its hash.
type auditLink struct {
	place int64
	hash  string
}

// check returns what is wrong with the next row, or an empty text.
func (l auditLink) check(place int64, hash string, fields []*string) string {
	switch missing := place - l.place - 1; {
	case missing > 0:
		return fmt.Sprintf("%d rows before it are missing", missing)
	case hash != auditHash(l.hash, fields):
		return "the row, or the one before it, was changed"
	default:
		return ""
	}
}

// auditHash computes the same hash as the function dlq_action_hash in PostgreSQL.
func auditHash(before string, fields []*string) string {
	var text strings.Builder
	text.WriteString(before + "\n")
	for i, f := range fields {
		if i > 0 {
			text.WriteByte(',')
		}
		if f == nil {
			text.WriteByte('-')
			continue
		}
		text.WriteString(strconv.Itoa(len(*f)) + ":" + *f)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])
}
