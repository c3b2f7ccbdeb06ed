// Package journal produces records and writes a journal of the records that the brokers
// acknowledged, with their offsets. The oracle compares the results with the journal, because the
// topic itself may have lost records.
package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// Producer produces to one topic. It is safe for concurrent use. The records of one Send keep their
// order.
type Producer struct {
	topic  string
	client *kgo.Client

	mu   sync.Mutex // guards the fields below
	file *os.File
	to   *bufio.Writer
	err  error
}

// Open continues the journal at path or creates it. The given options override the defaults.
func Open(path, topic string, seeds []string, more ...kgo.Opt) (*Producer, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(200_000), kgo.ProducerBatchMaxBytes(900_000),
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &Producer{topic: topic, client: client, file: file, to: bufio.NewWriter(file)}, nil
}

// Send produces records in order. It returns when all records are acknowledged and in the journal.
func (p *Producer) Send(ctx context.Context, records []testbank.Record) error {
	for i := range records {
		r := &records[i]
		record := &kgo.Record{Topic: p.topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		p.client.Produce(ctx, record, p.acknowledged)
	}
	if err := p.client.Flush(ctx); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.err, p.to.Flush())
}

// acknowledged writes a record to the journal.
func (p *Producer) acknowledged(r *kgo.Record, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("produce: %w", err))
		return
	}
	p.err = errors.Join(p.err, p.write(new(compare.FromKafka(r))))
}

func (p *Producer) write(entry *testbank.Record) error {
	line, err := json.Marshal(lineOf(entry))
	if err != nil {
		return err
	}
	_, err = p.to.Write(append(line, '\n'))
	return err
}

// Note adds to the journal a record that another client has produced.
func (p *Producer) Note(entry *testbank.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.write(entry), p.to.Flush())
}

// Close closes the producer and the journal.
func (p *Producer) Close() error {
	p.client.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.to.Flush(), p.file.Close())
}

// line is a record in the journal. Header keys need not be UTF-8, so they are stored as bytes.
type line struct {
	Partition int32    `json:"p"`
	Offset    int64    `json:"o"`
	Timestamp int64    `json:"t"`
	Key       []byte   `json:"k"`
	Value     []byte   `json:"v"`
	Headers   [][]byte `json:"h,omitempty"` // keys and values alternate
}

func lineOf(r *testbank.Record) line {
	l := line{Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		l.Headers = append(l.Headers, []byte(h.Key), h.Value)
	}
	return l
}

func (l line) record() testbank.Record {
	r := testbank.Record{Partition: l.Partition, Offset: l.Offset, Timestamp: l.Timestamp, Key: l.Key, Value: l.Value}
	for i := 0; i+1 < len(l.Headers); i += 2 {
		r.Headers = append(r.Headers, testbank.Header{Key: string(l.Headers[i]), Value: l.Headers[i+1]})
	}
	return r
}

// Read returns the records of a journal in the order in which they were acknowledged.
func Read(path string) ([]testbank.Record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	defer func() { _ = file.Close() }()
	var records []testbank.Record
	dec := json.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	for {
		var l line
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("journal: record %d: %w", len(records), err)
		}
		records = append(records, l.record())
	}
}

// Complete returns "" if, for each partition, the journal has every offset below the end exactly
// once.
func Complete(records []testbank.Record, ends map[int32]int64) string {
	seen := map[int32]map[int64]bool{}
	for i := range records {
		r := &records[i]
		if seen[r.Partition] == nil {
			seen[r.Partition] = map[int64]bool{}
		}
		if seen[r.Partition][r.Offset] {
			return fmt.Sprintf("the journal has offset %d of partition %d twice", r.Offset, r.Partition)
		}
		seen[r.Partition][r.Offset] = true
	}
	for p, end := range ends {
		if int64(len(seen[p])) != end {
			return fmt.Sprintf("the journal has %d records of partition %d, Kafka %d", len(seen[p]), p, end)
		}
	}
	return ""
}
