package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/projection"
)

// TestAnotherDatabaseOfTheGroupIsFound compares Kafka's committed offsets with the positions of the
// database. Only an instance with another database commits an offset beyond the position.
func TestAnotherDatabaseOfTheGroupIsFound(t *testing.T) {
	at := func(next int64) projection.StoredPosition {
		return projection.StoredPosition{Position: projection.Position{Next: next}}
	}
	paused, halted, set := at(5), at(5), at(5)
	paused.PausedReason, halted.HaltedReason, set.SetByHand = "new column", "no schema", true
	for name, tt := range map[string]struct {
		committed int64
		stored    []projection.StoredPosition // of partition 1; partition 0 is owned
		want      int64                       // the position in the result; -1: none
	}{
		"the offset follows the position": {4, []projection.StoredPosition{at(5)}, -1},
		"equal":                           {5, []projection.StoredPosition{at(5)}, -1},
		"ahead of it":                     {6, []projection.StoredPosition{at(5)}, 5},
		"there is no position":            {6, nil, 0},
		"nothing was consumed":            {0, nil, -1},
		"paused":                          {6, []projection.StoredPosition{paused}, -1},
		"halted":                          {6, []projection.StoredPosition{halted}, -1},
		"set by a person":                 {6, []projection.StoredPosition{set}, -1},
	} {
		c := scriptedConsumer(t, &script{}, func(*Config) {})
		c.workers[0] = newWorker(t.Context(), c, 0)
		committed := kadm.OffsetResponses{}
		committed.Add(kadm.OffsetResponse{Offset: kadm.Offset{Topic: "t", Partition: 0, At: 100}}) // this instance's own
		committed.Add(kadm.OffsetResponse{Offset: kadm.Offset{Topic: "other", Partition: 1, At: 100}})
		committed.Add(kadm.OffsetResponse{Offset: kadm.Offset{Topic: "t", Partition: 1, At: tt.committed}})
		stored := []projection.StoredPosition{at(3)}
		for _, p := range tt.stored {
			p.Partition = 1
			stored = append(stored, p)
		}
		found, is := c.elsewhere(committed, stored)
		if is != (tt.want >= 0) || is && (found.partition != 1 || found.position != tt.want || found.committed != tt.committed) {
			t.Errorf("%s: %+v, %t", name, found, is)
		}
	}
}

// TestAStandbyFindsAnotherDatabase shows that an instance without partitions finds the instance that
// has consumed them into another database. Otherwise nobody would notice that the database of the
// first instance does not change any more, for example if the topic has only one partition.
func TestAStandbyFindsAnotherDatabase(t *testing.T) {
	t.Parallel()
	_, seeds := startFake(t, 1, 1)
	s := &script{positions: []projection.StoredPosition{{Position: projection.Position{Next: 5}}}}
	c := scriptedConsumer(t, s, func(*Config) {})
	connect(t, c, seeds)
	for _, test := range []struct {
		committed int64
		want      bool
	}{{5, false}, {6, true}} {
		offsets := kadm.Offsets{}
		offsets.AddOffset("t", 0, test.committed, -1)
		if err := c.adm.CommitAllOffsets(t.Context(), "g", offsets); err != nil {
			t.Fatal(err)
		}
		found, is, err := c.findElsewhere(t.Context())
		if err != nil || is != test.want || is && (found.position != 5 || found.committed != 6) {
			t.Errorf("committed %d: %+v, %t, %v", test.committed, found, is, err)
		}
	}
}

// TestABrokersErrorDoesNotEndTheWarningAboutAnotherDatabase shows that an error of a broker is not
// taken for the answer that there is no other database. Otherwise it would end the warning, or put off
// its begin.
func TestABrokersErrorDoesNotEndTheWarningAboutAnotherDatabase(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 1)
	c := scriptedConsumer(t, &script{}, func(*Config) {})
	connect(t, c, seeds)
	offsets := kadm.Offsets{}
	offsets.AddOffset("t", 0, 6, -1)
	if err := c.adm.CommitAllOffsets(t.Context(), "g", offsets); err != nil {
		t.Fatal(err)
	}
	cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		partition := kmsg.NewListOffsetsResponseTopicPartition()
		partition.ErrorCode = kerr.TopicAuthorizationFailed.Code
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic, topic.Partitions = "t", []kmsg.ListOffsetsResponseTopicPartition{partition}
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	if found, is, err := c.findElsewhere(t.Context()); err == nil {
		t.Errorf("%+v, %t, without an error", found, is)
	}
}

func TestAnotherDatabaseOfTheGroupIsReported(t *testing.T) {
	health := &healthLog{}
	c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Health = health })
	found := elsewhere{partition: 1, position: 5, committed: 6}
	for _, step := range []struct{ is, warned bool }{{false, false}, {true, false}, {true, true}, {false, true}, {false, false}} {
		c.noteElsewhere(found, step.is, step.warned)
	}
	const warning = "warn group: partition 1 is consumed up to 6 by an instance of group g that writes to another database, where this one is at 5: " +
		"the instances of a group share the partitions, so both databases are incomplete. Give one of the two a --group (KAFKA_GROUP) of its own, " +
		"unless this database was just restored"
	if health.count(0, warning) != 2 || health.count(0, "ok group") != 1 || len(health.reported) != 3 {
		t.Errorf("%q", health.reported)
	}
}
