-- Prepares a transaction that reads the ledger. It may be idle while the entries are compared. The
-- entries are read as text, so floating-point numbers have all their digits.
SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('extra_float_digits', '1', true);
