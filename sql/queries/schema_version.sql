SELECT coalesce(max(version_id), 0) FROM projector_schema_version WHERE is_applied;
