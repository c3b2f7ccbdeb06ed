package readmodel_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"projector/errclass"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/readmodel"
	"projector/readmodel/balance"
)

// In a database whose encoding cannot store every text, one account id could stop a partition for
// ever. SQL_ASCII refuses JSON with an escape, so one event could stop a custom projection. A
// database that was migrated before this was refused is refused by the other commands.
func TestMigrateRefusesAnEncodingThatCannotHoldEveryText(t *testing.T) {
	url := devtest.Database(t)
	pool, err := readmodel.OpenPool(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := "in_" + strings.ToLower(encoding)
		if _, err := pool.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = pool.Exec(t.Context(), "DROP DATABASE "+name+" WITH (FORCE)") }()
		other, err := devstack.WithDatabase(url, name)
		if err != nil {
			t.Fatal(err)
		}
		refused := func(err error) bool {
			return errors.As(err, new(errclass.Text)) && strings.Contains(err.Error(), "encoding is "+encoding+" and must be UTF8: create one with")
		}
		if done, err := readmodel.Migrate(t.Context(), other); !refused(err) || len(done) > 0 {
			t.Errorf("%d migrations, %v", len(done), err)
		}
		migrated, err := readmodel.OpenPool(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		defer migrated.Close()
		if _, err := migrated.Exec(t.Context(), `CREATE TABLE projector_schema_version AS SELECT 1000::bigint AS version_id, true AS is_applied`); err != nil {
			t.Fatal(err)
		}
		if err := readmodel.CheckSchema(t.Context(), migrated); !refused(err) {
			t.Errorf("%s: %v", encoding, err)
		}
	}
}

func TestManyMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	pg := devtest.Postgres(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := readmodel.Migrate(t.Context(), pg.URL()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	pool, err := readmodel.OpenPool(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := readmodel.CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
	if err := (balance.Definition{}).Ready(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

func TestSchemaErrorsNameTheRemedy(t *testing.T) {
	t.Parallel()
	pg := devtest.Postgres(t)
	pool, err := readmodel.OpenPool(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var schema *readmodel.SchemaError
	if err := readmodel.CheckSchema(t.Context(), pool); !errors.As(err, &schema) || schema.Have != 0 {
		t.Errorf("error %v, want a SchemaError without a version", err)
	}
}
