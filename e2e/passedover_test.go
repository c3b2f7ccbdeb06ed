package e2e_test

import (
	"fmt"
	"testing"
)

// TestReadyAgainWhenARecordIsPassedOver moves the position past a record that cannot be written.
// The partition must become ready even if no other record follows.
func TestReadyAgainWhenARecordIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF NEW.account_id = 'closed' THEN RAISE EXCEPTION 'closed' USING ERRCODE = '55P03'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER closed BEFORE INSERT ON account_balance FOR EACH ROW EXECUTE FUNCTION closed();`)
	p := w.start()
	w.append(credit("open", 1))
	await(t, "every record consumed", w.arrived)
	w.append(credit("closed", 1))
	await(t, "unready", p.answers("/readyz", 503, "55P03"))
	w.exec("UPDATE projector_position SET next_offset = next_offset + 1, fence = fence + 1")
	awaitWithin(t, soon, "ready again", p.answers("/readyz", 200, ""))
	await(t, "not retrying", func() string {
		name := fmt.Sprintf(`projector_retrying{partition="0",projection="account_balance",topic=%q}`, w.topic)
		if p.metrics()[name] != 0 {
			return name + " 1"
		}
		return ""
	})
	p.terminate()
	w.atRest()
}
