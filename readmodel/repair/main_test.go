package repair_test

import (
	"testing"

	"projector/readmodel/readmodeltest"
)

func TestMain(m *testing.M) { readmodeltest.Main(m) }

// The tests of this package often use these helpers.
type worker = readmodeltest.Worker

var (
	count         = readmodeltest.Count
	credit        = readmodeltest.Credit
	current       = readmodeltest.Current
	expect        = readmodeltest.Expect
	jsonFormat    = readmodeltest.JSONFormat
	lines         = readmodeltest.Lines
	newRepair     = readmodeltest.NewRepair
	newWorker     = readmodeltest.NewWorker
	newWorkerWith = readmodeltest.NewWorkerWith
	openPool      = readmodeltest.OpenPool
	openPoolAt    = readmodeltest.OpenPoolAt
	partition     = readmodeltest.Partition
	replayOf      = readmodeltest.ReplayOf
	same          = readmodeltest.Same
	startWorker   = readmodeltest.StartWorker
)
