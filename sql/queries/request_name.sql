-- Sets for this transaction the approved request to which its audit rows belong.
SELECT set_config('projector.request', $1, true);
