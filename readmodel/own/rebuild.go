package own

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
	"projector/readmodel"
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
		table, err := writtenTable(text, func(schema, _ string) bool { return schema != shadowSchema })
		if err != nil {
			return err
		}
		if table != "" {
			return &StatementError{Projection: p.Name, Line: s.Line, Err: writesLive(p.Name, table)}
		}
	}
	return nil
}

func writesLive(name, table string) error {
	return readmodel.Forbidden("the SQL of projection " + name + " writes " + table +
		", which a rebuild would change in place: name it in `-- tables:`, and in the SQL without its schema")
}
