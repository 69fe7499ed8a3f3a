"""Operations: one module per family, one table that names them all."""
