-- Says in this transaction which approved request its audit rows belong to.
SELECT set_config('projector.request', $1, true);
