package repair

import (
	"cmp"
	"slices"
	"strings"

	"projector/projection"
	"projector/readmodel"
)

// inOrder sorts records by the topic and partition of their account's first record, then by account
// and version. A transaction then locks few accounts. Records of the same version keep their order.
func inOrder(records []*readmodel.RepairRecord) []*readmodel.RepairRecord {
	first := map[string]*projection.Record{} // the first record of each account
	for _, rec := range records {
		if id := rec.Decoded.Event.AccountID; first[id] == nil {
			first[id] = &rec.Record
		}
	}
	sorted := slices.Clone(records)
	slices.SortStableFunc(sorted, func(a, b *readmodel.RepairRecord) int {
		x, y := &a.Decoded.Event, &b.Decoded.Event
		p, q := first[x.AccountID], first[y.AccountID]
		return cmp.Or(strings.Compare(p.Topic, q.Topic), cmp.Compare(p.Partition, q.Partition),
			strings.Compare(x.AccountID, y.AccountID), cmp.Compare(x.Version, y.Version))
	})
	return sorted
}

func decoded(records []*readmodel.RepairRecord) []projection.DecodedRecord {
	list := make([]projection.DecodedRecord, len(records))
	for i, rec := range records {
		list[i] = rec.DecodedRecord
	}
	return list
}

func accountsOf(records []*readmodel.RepairRecord) []string {
	ids := make([]string, len(records))
	for i, rec := range records {
		ids[i] = rec.Decoded.Event.AccountID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
