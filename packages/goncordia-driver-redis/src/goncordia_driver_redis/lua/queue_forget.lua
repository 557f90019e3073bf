#!lua flags=allow-oom
-- needs:
-- Forgets queues that have neither waiting nor running jobs, some at a time.
-- ARGV: time, the cursor of the call before or 0. Answers: the next cursor, 0 at the end.
expect('HLEN', T .. 'r')
expect('SCARD', T .. 'told')
local found = ask('SSCAN', T .. 'qs', ARGV[2], 'COUNT', 200)
for _, name in ipairs(found[2]) do
  if call('EXISTS', T .. 'hq:' .. name, T .. 'hg:' .. name) == 0
    and call('HEXISTS', T .. 'r', name) == 0 then
    call('SREM', T .. 'qs', name)
    call('SREM', T .. 'told', name)
  end
end
return found[1]
