ANALYZE projector_rebuild.{table}, projector_rebuild.{difference};
