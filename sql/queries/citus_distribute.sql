SELECT create_distributed_table($1::regclass, 'account_id', colocate_with => $2);
