#!lua flags=no-writes
-- needs:
-- The version of the layout, and the oldest code that may work with it; false before the first.
return call('HMGET', T .. 'schema', 'version', 'oldest')
