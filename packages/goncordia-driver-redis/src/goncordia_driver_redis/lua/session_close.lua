#!lua flags=allow-oom
-- needs: times jobs store wakes lines waiting unique finish sessions
-- Ends a session, and releases what it holds, at most so many; how many are left. The session is
-- ended by the first call already, so that it claims nothing more.
-- One that was ended otherwise is left to the rescuers.
-- ARGV: time, session, limit.
local session = ARGV[2]
local open, closing = unpack(call('HMGET', T .. 's:' .. session, 'open', 'closing'))
if open == '1' then
  call('HSET', T .. 's:' .. session, 'closing', 1)
  end_session(session)
elseif closing ~= '1' then
  return 0
end
for _, id in ipairs(call('ZRANGE', T .. 'c:' .. session, 0, ARGV[3] - 1)) do
  local job = read_job(id)
  if job then end_claim(job, RELEASE, NOW) else let_go(session, id) end
end
settle_claims()
settle_lines()
tell()
return call('ZCARD', T .. 'c:' .. session)
