ALTER TABLE board ADD COLUMN board_id TEXT  -- 16 hexadecimal digits, new for a board that is created, migrated or restored
  CONSTRAINT board_id_is_hexadecimal CHECK (length(board_id) = 16 AND board_id NOT GLOB '*[^0-9a-f]*');

UPDATE board SET board_id = lower(hex(randomblob(8)));
