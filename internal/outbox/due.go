package outbox

import (
	"context"
	"time"

	"projector/readmodel/accountdb"
)

// roundVersions is about how many versions are queried before the gap register is read again.
const roundVersions = 10 * AskAtOnce

// due returns the versions to query now. The oldest gap comes first. Versions that were queried
// before without success come last.
func (f *Fetcher) due(ctx context.Context) ([]accountdb.Missing, error) {
	partitions := f.cfg.Partitions()
	if len(partitions) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var (
		now        = time.Now()
		due, again part
		filter     = accountdb.MissingFilter{For: f.cfg.After, Topic: f.cfg.Topic, Partitions: partitions}
	)
	for m, err := range f.cfg.Missing(ctx, filter) {
		if err != nil {
			return nil, err
		}
		m.Last = m.First + min(m.Last-m.First, AskAtOnce-1)
		switch {
		case f.schedule.NotFailed(m.AccountID, m.First):
			due.add(m)
		case f.schedule.Due(m.AccountID, m.First, now):
			again.add(m)
		}
		if due.full() {
			break
		}
	}
	for _, m := range again.missing {
		due.add(m)
	}
	return due.missing, nil
}

// part contains the versions of one round. These are at most roundVersions, or more if the last gap
// goes beyond that number.
type part struct {
	missing  []accountdb.Missing
	versions int64
}

func (p *part) full() bool { return p.versions >= roundVersions }

func (p *part) add(m accountdb.Missing) {
	if !p.full() {
		p.missing, p.versions = append(p.missing, m), p.versions+m.Last-m.First+1
	}
}

// queries splits the due versions into queries. If nothing is due, it returns one query without
// versions, because this query shows after the start whether the outbox works.
func queries(due []accountdb.Missing) (all [][]accountdb.Missing) {
	begin, n := 0, int64(0)
	for i, m := range due {
		size := m.Last - m.First + 1
		if n+size > AskAtOnce && n > 0 {
			all = append(all, due[begin:i])
			begin, n = i, 0
		}
		n += size
	}
	return append(all, due[begin:])
}

func versions(query []accountdb.Missing) (all []Version) {
	for _, m := range query {
		for v := range m.Versions() {
			all = append(all, Version{m.AccountID, v})
		}
	}
	return all
}
