package readmodel_test

import (
	"testing"

	"projector/readmodel/readmodeltest"
)

func TestMain(m *testing.M) { readmodeltest.Main(m) }

// The tests of this package often use these helpers.
var (
	credit      = readmodeltest.Credit
	eur         = readmodeltest.EUR
	eventAs     = readmodeltest.Event
	exec        = readmodeltest.Exec
	expect      = readmodeltest.Expect
	inPartition = readmodeltest.InPartition
	lines       = readmodeltest.Lines
	newWorker   = readmodeltest.NewWorker
	noon        = readmodeltest.Noon
	openPool    = readmodeltest.OpenPool
	openPoolAt  = readmodeltest.OpenPoolAt
	partition   = readmodeltest.Partition
	same        = readmodeltest.Same
	startWorker = readmodeltest.StartWorker
)
