#!lua flags=no-writes
-- needs: jobs extras
-- Running jobs of a session, or of one of its fetches; the first of them if they are large.
-- ARGV: time, session, number of the fetch or '', how many to pass over, how many to give.
local least, most = ARGV[3], ARGV[3]
if least == '' then least, most = '-inf', '+inf' end
local jobs, extras, seen, size = {}, {}, 0, 0
local ids = call('ZRANGEBYSCORE', T .. 'c:' .. ARGV[2], least, most, 'LIMIT', ARGV[4], ARGV[5])
for _, id in ipairs(ids) do
  if size > READ_SIZE then break end
  seen = seen + 1
  local raw = call('GET', T .. 'j:' .. id)
  if raw then
    size = size + #raw
    give(jobs, extras, id, raw)
  end
end
return { now, jobs, extras, seen, #ids }
