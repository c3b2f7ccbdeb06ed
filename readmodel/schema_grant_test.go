package readmodel_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
	"projector/sql"
)

// grantsBetween runs grant when a session asks whether the schema is hidden from its role.
type grantsBetween struct{ grant func() }

func (g grantsBetween) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if q.SQL == sql.Query("hidden_schema") {
		g.grant()
	}
	return ctx
}

func (grantsBetween) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestUsageIsGrantedDuringTheCheck grants USAGE on the schema between two queries of CheckSchema. A
// schema that is too old would end the program.
func TestUsageIsGrantedDuringTheCheck(t *testing.T) {
	t.Parallel()
	cluster := devtest.Postgres(t)
	database, err := cluster.NewDatabase(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	devtest.Schema(t, database)
	owner := readmodeltest.OpenPoolAt(t, database)
	execute := func(statement string) {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	execute("CREATE ROLE runtime LOGIN PASSWORD 'correct-horse'")
	execute("GRANT SELECT ON projector_schema_version TO runtime")
	execute("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal("the database's URL cannot be read")
	}
	at.User = url.UserPassword("runtime", "correct-horse")
	pool := readmodeltest.OpenPoolAt(t, at.String(), readmodel.WithTracer(grantsBetween{func() {
		execute("GRANT USAGE ON SCHEMA public TO runtime")
	}}))
	if err := readmodel.CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
}
