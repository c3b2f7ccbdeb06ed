package accountdb_test

import (
	"testing"

	"projector/readmodel/readmodeltest"
)

func TestMain(m *testing.M) { readmodeltest.Main(m) }

// The tests of this package often use these helpers.
var (
	credit    = readmodeltest.Credit
	openPool  = readmodeltest.OpenPool
	partition = readmodeltest.Partition
)
