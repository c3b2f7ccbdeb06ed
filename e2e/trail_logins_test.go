package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestTheRuntimeAddsOnlyWhatItFetches expects that the runtime's login cannot forge the audit
// trail. It must not insert an operator's row, choose the number or time of a row, or mark a dead
// letter as discarded.
func TestTheRuntimeAddsOnlyWhatItFetches(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	app, operator := r.session("bank_app"), r.session("bank_operator")
	for _, action := range []string{"discard", "skip", "replay", "rebuild", "position_set", "pause", "resume", "open", "four_eyes"} {
		app.checkPrivilege("INSERT INTO dlq_action (action, actor, reason, result) VALUES ('"+action+"', 'op1@desk', 'agreed', 'discarded')", false)
		operator.checkPrivilege("INSERT INTO dlq_action (action, actor, reason, result) VALUES ('"+action+"', 'op1@desk', 'agreed', 'discarded')", true)
	}
	app.checkPrivilege("INSERT INTO dlq_action (action, actor, result) VALUES ('fetch', 'me', 'applied'); SET CONSTRAINTS ALL IMMEDIATE", true)
	for _, user := range []*session{app, operator} {
		user.checkPrivilege("INSERT INTO dlq_action (id, action, actor, result) OVERRIDING SYSTEM VALUE VALUES (5, 'fetch', 'me', 'applied')", false)
		for _, column := range []string{"at", "db_user", "chain", "hash", "request_id", "requested_by", "approved_by", "approval_reason"} {
			user.checkPrivilege("INSERT INTO dlq_action ("+column+", action, actor, result) VALUES (DEFAULT, 'fetch', 'me', 'applied')", false)
		}
	}
	operator.checkPrivilege("SELECT pg_sleep(0.01); DO $$ DECLARE t timestamptz; BEGIN INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'me', 'skipped') RETURNING at INTO t; ASSERT t > now(); END $$", true)
	operator.checkPrivilege("SELECT pg_sleep(0.01); DO $$ DECLARE t timestamptz; BEGIN INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor) VALUES ('skip', '{}', '{}', '{}', '{}', '', 1, 'x') RETURNING at INTO t; ASSERT t > now(); END $$", true)
	r.exec("GRANT projector_operator TO bank_app") // an administrator grants both roles by mistake
	r.session("bank_app").checkPrivilege("INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'me', 'skipped')", true)
}

// TestAReaderStopsNoRepair lets a reader hold the projector's advisory locks. The reader must not
// be able to lock the tables of the audit trail, and repairs must still work.
func TestAReaderStopsNoRepair(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.produce(r.shortStream())
	p := launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags()...)
	r.exact(r.oracle(), exactlyOnce)
	p.terminate()
	reader := r.session("bank_reader")
	if _, err := reader.conn.Exec(t.Context(), `SELECT pg_advisory_lock(hashtext('projector audit chain')), pg_advisory_lock(hashtext('projector grants'))`); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"SELECT FROM dlq_action_lock", "SELECT FROM dlq_action_lock FOR UPDATE", "SELECT FROM dlq_action_lock FOR KEY SHARE",
		"LOCK TABLE dlq_action_lock IN ACCESS SHARE MODE", "LOCK TABLE dlq_action IN ACCESS SHARE MODE", "CREATE TEMP TABLE mine (i int)",
	} {
		reader.checkPrivilege(statement, false)
		r.session("bank_app").checkPrivilege(statement, false)
	}
	r.mustAs("bank_operator", "pause", "--all", "--topic="+r.topic, "--group="+r.group, "--reason=x", "--yes")
	r.mustAs("bank_migrate", "migrate") // waits ten seconds for the lock and then continues without it
}

// TestAWrongPositionIsUndoneFromTheTrail restores an old position. It uses only the data of the
// audit trail.
func TestAWrongPositionIsUndoneFromTheTrail(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.produce(r.shortStream())
	p := launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags()...)
	r.exact(r.oracle(), exactlyOnce)
	p.terminate()
	before := r.positions()
	r.mustAs("bank_operator", "position", "set", "--topic="+r.topic, "--group="+r.group, "--partition=1", "--offset=3", "--reason=mistyped", "--yes")
	if maps.Equal(before, r.positions()) {
		t.Fatal("the position was not set")
	}

	var row struct {
		Topic, Group, Projection, Result string
		Partition                        int32
	}
	if err := json.Unmarshal([]byte(r.mustAs("bank_colleague", "audit", "--action=position_set", "--since=1h", "--output=json")), &row); err != nil {
		t.Fatal(err)
	}
	var from, to int64
	if _, err := fmt.Sscanf(row.Result, "from %d to %d", &from, &to); err != nil {
		t.Fatalf("%q: %v", row.Result, err)
	}
	r.mustAs("bank_colleague", "position", "set", "--topic="+row.Topic, "--projection="+row.Projection, "--group="+row.Group,
		fmt.Sprint("--partition=", row.Partition), fmt.Sprint("--offset=", from), fmt.Sprint("--expect=", to), "--skip-unread", "--reason=undo, INC-1234", "--yes")
	if after := r.positions(); !maps.Equal(before, after) {
		t.Errorf("positions %v, were %v", after, before)
	}
}

// TestOnlyTheRolesConnect expects that a login without a role cannot connect.
func TestOnlyTheRolesConnect(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.exec("CREATE ROLE bank_stranger LOGIN PASSWORD '" + rolesPassword + "'")
	stranger := r.db.Config().ConnConfig.Copy()
	stranger.User, stranger.Password = "bank_stranger", rolesPassword
	if conn, err := pgx.ConnectConfig(t.Context(), stranger); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a login without a role has connected")
	} else if !strings.Contains(err.Error(), "42501") {
		t.Error(err)
	}
}
