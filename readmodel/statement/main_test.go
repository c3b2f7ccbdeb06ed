package statement_test

import (
	"testing"

	"projector/readmodel/readmodeltest"
)

func TestMain(m *testing.M) { readmodeltest.Main(m) }

// The tests of this package often use these helpers.
var (
	eur       = readmodeltest.EUR
	eventAs   = readmodeltest.Event
	lines     = readmodeltest.Lines
	newFeeder = readmodeltest.NewFeeder
	noon      = readmodeltest.Noon
	openPool  = readmodeltest.OpenPool
	partition = readmodeltest.Partition
	same      = readmodeltest.Same
)
