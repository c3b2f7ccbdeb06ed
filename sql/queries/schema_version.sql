SELECT coalesce(max(version_id), 0), current_setting('server_encoding') FROM projector_schema_version WHERE is_applied;
