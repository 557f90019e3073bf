#!lua flags=allow-oom
-- needs: times jobs store wakes lines waiting keys finish sessions
-- Ends a session, and releases what it holds, at most so many; how many are left. The session is
-- ended by the first call already, so that it claims nothing more.
-- ARGV: time, session, limit, 1 to go on with what an earlier call began.
local session = ARGV[2]
if ARGV[4] ~= '1' then
  if call('HGET', T .. 's:' .. session, 'open') ~= '1' then return 0 end
  end_session(session)
end
for _, id in ipairs(call('ZRANGE', T .. 'c:' .. session, 0, ARGV[3] - 1)) do
  local job = read_job(id)
  if job then end_claim(job, RELEASE, NOW) else let_go(session, id) end
end
settle_claims()
settle_lines()
tell()
return call('ZCARD', T .. 'c:' .. session)
