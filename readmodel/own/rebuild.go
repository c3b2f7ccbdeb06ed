package own

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
)

// shadowSchema is the schema of a rebuild's tables.
const shadowSchema = "projector_rebuild"

// rebuildable returns an error if a statement would write to a live table in a rebuild. The table
// is live if `-- tables:` does not name it, or if the statement names it with its schema. Writes by
// a function of the database, or by a statement without a plan, are only detected after the
// statements have run; see guarded.
func rebuildable(ctx context.Context, rebuilt *pgxpool.Pool, p file.Projection) error {
	for _, s := range p.Statements {
		if !hasPlan(s.SQL) {
			continue
		}
		var text string
		if err := rebuilt.QueryRow(ctx, explainFirst+s.SQL, pgx.QueryExecModeDescribeExec).Scan(&text); err != nil {
			return &StatementError{Projection: p.Name, Line: s.Line, Err: err}
		}
		var plans []struct{ Plan writes }
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			return fmt.Errorf("read the plan: %w", err)
		}
		for i := range plans {
			if table := plans[i].Plan.outside(); table != "" {
				return &StatementError{Projection: p.Name, Line: s.Line, Err: writesLive(p.Name, table)}
			}
		}
	}
	return nil
}

// writes is a node of a plan, with the schema of the written table.
type writes struct {
	Node     string `json:"Node Type"`
	Schema   string
	Relation string `json:"Relation Name"`
	Plans    []writes
}

// outside returns the first written table that does not belong to the rebuild, or an empty text.
func (w *writes) outside() string {
	if w.Node == "ModifyTable" && w.Schema != shadowSchema {
		return w.Relation
	}
	for i := range w.Plans {
		if table := w.Plans[i].outside(); table != "" {
			return table
		}
	}
	return ""
}

func writesLive(name, table string) error {
	return &pgconn.PgError{
		Severity: "ERROR", Code: "42501",
		Message: "the SQL of projection " + name + " writes " + table +
			", which a rebuild would change in place: name it in `-- tables:`, and in the SQL without its schema",
	}
}
