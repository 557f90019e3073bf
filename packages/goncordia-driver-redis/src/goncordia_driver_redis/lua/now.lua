#!lua flags=no-writes
-- needs:
-- The time, in microseconds since 1970.
return now
