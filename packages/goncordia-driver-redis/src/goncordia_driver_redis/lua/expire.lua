#!lua flags=allow-oom
-- needs: times jobs store extras wakes lines waiting unique finish sessions
-- Ends the sessions whose lease is over, and gives jobs that ended sessions still hold. It does
-- nothing unless the one who asks is open, has beat within half a lease, and has been in contact
-- for a whole one: all looked at in the same step, so that an outage ends nobody.
-- ARGV: time, session, limit. Answers: time, jobs, and what belongs to them.
local jobs, extras, gone, size = {}, {}, {}, 0
local open, lease, beat, since =
  unpack(ask('HMGET', T .. 's:' .. ARGV[2], 'open', 'lease', 'beat', 'since'))
if open ~= '1' or now - beat > lease / 2 or now - since < tonumber(lease) then
  return { now, jobs, extras }
end
local silent = ask('ZRANGEBYSCORE', T .. 'so', '-inf', above(now))
local ended = ask('SMEMBERS', T .. 'se')
for _, session in ipairs(silent) do
  look_at_session(session)
  ended[#ended + 1] = session
end
local room = tonumber(ARGV[3])
for _, session in ipairs(ended) do
  if room <= 0 or size > READ_SIZE then break end
  for _, id in ipairs(ask('ZRANGE', T .. 'c:' .. session, 0, room - 1)) do
    if size > READ_SIZE then break end
    local raw = ask('GET', T .. 'j:' .. id)
    if raw then
      size = size + #raw
      give(jobs, extras, id, raw)
      room = room - 1
    else
      look_at_drop(session)
      gone[#gone + 1] = { session, id }
    end
  end
end
for _, session in ipairs(silent) do end_session(session) end
for _, each in ipairs(gone) do drop(unpack(each)) end
settle_claims()
return { now, jobs, extras }
