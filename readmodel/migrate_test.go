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
// ever.
func TestMigrateRefusesAnEncodingThatCannotHoldEveryText(t *testing.T) {
	url := devtest.Database(t)
	pool, err := readmodel.OpenPool(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const name = "in_latin1"
	if _, err := pool.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = pool.Exec(t.Context(), "DROP DATABASE "+name) }()
	latin, err := devstack.WithDatabase(url, name)
	if err != nil {
		t.Fatal(err)
	}
	done, err := readmodel.Migrate(t.Context(), latin)
	if !errors.As(err, new(errclass.Text)) || !strings.Contains(err.Error(), "encoding is LATIN1") || len(done) > 0 {
		t.Errorf("%d migrations, %v", len(done), err)
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
	var schema readmodel.Unfit
	if err := readmodel.CheckSchema(t.Context(), pool); !errors.As(err, &schema) || !strings.Contains(schema.Error(), "has no projector schema: run `projector migrate`") {
		t.Errorf("error %v", err)
	}
}
