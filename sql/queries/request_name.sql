-- Sets the approved request to which the audit rows of this transaction belong.
SELECT set_config('projector.request', $1, true);
