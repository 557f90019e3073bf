#!lua flags=no-writes
-- needs: base
-- The time, in microseconds since 1970.
return now
