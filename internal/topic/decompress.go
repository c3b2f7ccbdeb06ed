package topic

import (
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxBatchBytes limits the decompressed size of a batch of records, because the whole batch is in
// memory. It equals the default of the run command.
const maxBatchBytes = 64 << 20

// bounded returns a decompressor for batches up to maxBatchBytes. Only a kgo.Client has a
// decompressor with a limit. The client that is made here never connects.
var bounded = sync.OnceValues(func() (kgo.Decompressor, error) {
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(maxBatchBytes))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	decompressor, is := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !is {
		return nil, errors.New("the Kafka client has no decompressor")
	}
	return decompressor, nil
})

// batchTooLarge means that a batch in Kafka is larger than maxBatchBytes.
type batchTooLarge struct{ first, last int64 }

// Error implements error.
func (e batchTooLarge) Error() string {
	return fmt.Sprintf("the batch of records from offset %d to %d is larger than %d MiB when it is decompressed, so it is not read",
		e.first, e.last, maxBatchBytes>>20)
}

// SafeText implements errclass.Describer.
func (e batchTooLarge) SafeText() string { return e.Error() }
