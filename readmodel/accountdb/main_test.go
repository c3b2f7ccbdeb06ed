package accountdb_test

import (
	"context"
	"testing"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

func TestMain(m *testing.M) {
	devtest.Main(m, func(ctx context.Context, url string) error {
		_, err := readmodel.Migrate(ctx, url)
		return err
	})
}
