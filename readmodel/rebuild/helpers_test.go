package rebuild_test

import "projector/readmodel/readmodeltest"

// The tests of this package often use these helpers.
type worker = readmodeltest.Worker

var (
	credit      = readmodeltest.Credit
	current     = readmodeltest.Current
	expect      = readmodeltest.Expect
	lines       = readmodeltest.Lines
	newRepair   = readmodeltest.NewRepair
	newWorker   = readmodeltest.NewWorker
	partition   = readmodeltest.Partition
	startWorker = readmodeltest.StartWorker
)
