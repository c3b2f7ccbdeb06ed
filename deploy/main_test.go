//go:build deploy

package deploy_test

import (
	"context"
	"testing"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

func TestMain(m *testing.M) {
	devtest.Main(m, func(ctx context.Context, databaseURL string) error {
		_, err := readmodel.Migrate(ctx, databaseURL)
		return err
	})
}
