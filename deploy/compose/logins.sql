-- These are the logins of docs/security.md. They are for trying out only, because the password is
-- public.
CREATE ROLE bank_migrate LOGIN PASSWORD 'projector' IN ROLE projector_migrator;
ALTER ROLE bank_migrate SET role = 'projector_migrator';
CREATE ROLE bank_app LOGIN PASSWORD 'projector' IN ROLE projector_runtime;
CREATE ROLE bank_operator LOGIN PASSWORD 'projector' IN ROLE projector_operator;
CREATE ROLE bank_approver LOGIN PASSWORD 'projector' IN ROLE projector_approver;
CREATE ROLE bank_reader LOGIN PASSWORD 'projector' IN ROLE projector_reader;
