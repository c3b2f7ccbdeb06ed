package readmodel_test

import (
	"testing"

	"projector/readmodel/readmodeltest"
)

func TestMain(m *testing.M) { readmodeltest.Main(m) }

// The tests of this package often use these helpers.
type worker = readmodeltest.Worker

var (
	at            = readmodeltest.At
	count         = readmodeltest.Count
	credit        = readmodeltest.Credit
	current       = readmodeltest.Current
	eur           = readmodeltest.EUR
	eventAs       = readmodeltest.Event
	exec          = readmodeltest.Exec
	expect        = readmodeltest.Expect
	inPartition   = readmodeltest.InPartition
	lines         = readmodeltest.Lines
	newRepair     = readmodeltest.NewRepair
	newWorker     = readmodeltest.NewWorker
	newWorkerWith = readmodeltest.NewWorkerWith
	noon          = readmodeltest.Noon
	openPool      = readmodeltest.OpenPool
	openPoolAt    = readmodeltest.OpenPoolAt
	partition     = readmodeltest.Partition
	replayOf      = readmodeltest.ReplayOf
	same          = readmodeltest.Same
)
