package e2e_test

import (
	"strings"
	"testing"
)

// foreignCode lists types of code that the owner of a table can attach to the table. The code calls
// the function note, which records the role that runs the code.
var foreignCode = map[string]string{
	"an index expression": `CREATE INDEX ON loyalty (team.tidy(account_id))`,
	"a check":             `ALTER TABLE loyalty ADD CHECK (team.tidy(account_id) <> '')`,
	"a default":           `ALTER TABLE loyalty ADD COLUMN extra text DEFAULT team.tidy('x')`,
	"a generated column":  `ALTER TABLE loyalty ADD COLUMN extra text GENERATED ALWAYS AS (team.tidy(account_id)) STORED`,
	"a domain": `CREATE DOMAIN team.id AS text CHECK (team.tidy(VALUE) <> '');
		ALTER TABLE loyalty ALTER account_id TYPE team.id`,
	"an array of a domain": `CREATE DOMAIN team.word AS text CHECK (team.tidy(VALUE) <> '');
		ALTER TABLE loyalty ADD COLUMN words team.word[] DEFAULT ARRAY['x'::team.word]`,
}

// TestTheOwnerOfATableGainsNothingByARebuild attaches code to a custom projection's table. A
// rebuild must not run this code, because the code would have the rights of the login that
// rebuilds.
func TestTheOwnerOfATableGainsNothingByARebuild(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.mustAs("bank_migrate", "migrate")
	r.exec(`CREATE ROLE appteam LOGIN; GRANT USAGE, CREATE ON SCHEMA public TO appteam; CREATE SCHEMA team AUTHORIZATION appteam; GRANT USAGE ON SCHEMA team TO PUBLIC;
		CREATE TABLE team.ran (as_whom name); GRANT INSERT ON team.ran TO PUBLIC; ALTER TABLE team.ran OWNER TO appteam;
		CREATE FUNCTION team.note() RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO team.ran VALUES (current_user); RETURN 'x'; END $$;
		CREATE FUNCTION team.tidy(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM team.note(); RETURN t; END $$;
		ALTER FUNCTION team.note() OWNER TO appteam; ALTER FUNCTION team.tidy(text) OWNER TO appteam`)
	group := "--group=" + r.group
	source := []string{"--projection-file=../docs/examples/loyalty.sql", "--topic=" + r.topic, group}
	rebuild := append([]string{"rebuild"}, source...)
	r.append(earned("a", 1, "5"), earned("b", 1, "1"))
	made := func() {
		r.exec(`CREATE TABLE loyalty (account_id text PRIMARY KEY, points bigint NOT NULL, version bigint NOT NULL);
			ALTER TABLE loyalty OWNER TO appteam; GRANT SELECT, INSERT, UPDATE ON loyalty TO projector_projection;
			GRANT SELECT ON loyalty TO projector_operator, projector_migrator`)
	}
	made()
	p := launch(t, []string{rolesPassword}, r.connection("bank_app"), r.flags(source[0])...)
	await(t, "every record consumed", r.arrived)
	p.terminate()
	for name, code := range foreignCode {
		r.exec("SET ROLE appteam; " + code + "; RESET ROLE; TRUNCATE team.ran")
		r.mustAs("bank_operator", rebuild...)
		var whom string
		if err := r.db.QueryRow(t.Context(), "SELECT coalesce(string_agg(DISTINCT as_whom, ', '), '') FROM team.ran").Scan(&whom); err != nil {
			t.Fatal(err)
		}
		if whom != "" {
			t.Errorf("%s ran as %s", name, whom)
		}
		r.exec("TRUNCATE team.ran")
		r.exec("DROP TABLE loyalty CASCADE; DROP DOMAIN IF EXISTS team.id, team.word")
		made()
		r.exec("INSERT INTO loyalty VALUES ('a', 5, 1), ('b', 1, 1)")
	}

	// A row security policy would run as the login that compares, so a rebuild of a table with a
	// policy is refused.
	r.exec(`SET ROLE appteam; ALTER TABLE loyalty ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON loyalty USING (team.tidy(account_id) <> ''); RESET ROLE`)
	if status, stderr := r.runAs("bank_operator", rebuild...); status != 1 || !strings.Contains(stderr, "row-level security") {
		t.Errorf("a policy: exit %d: %s", status, stderr)
	}
	var ran int
	if err := r.db.QueryRow(t.Context(), "SELECT count(*) FROM team.ran").Scan(&ran); err != nil || ran > 0 {
		t.Errorf("a policy ran %d times, %v", ran, err)
	}
}
