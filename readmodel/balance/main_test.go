package balance_test

import (
	"testing"

	"projector/readmodel/readmodeltest"
)

func TestMain(m *testing.M) { readmodeltest.Main(m) }

// The tests of this package often use these helpers.
type worker = readmodeltest.Worker

var (
	at            = readmodeltest.At
	credit        = readmodeltest.Credit
	current       = readmodeltest.Current
	expect        = readmodeltest.Expect
	inPartition   = readmodeltest.InPartition
	newRepair     = readmodeltest.NewRepair
	newWorker     = readmodeltest.NewWorker
	newWorkerWith = readmodeltest.NewWorkerWith
	openPool      = readmodeltest.OpenPool
	partition     = readmodeltest.Partition
	replayOf      = readmodeltest.ReplayOf
	startWorker   = readmodeltest.StartWorker
)
