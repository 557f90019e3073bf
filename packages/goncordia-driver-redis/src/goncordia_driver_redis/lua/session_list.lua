#!lua flags=no-writes
-- needs:
-- All open sessions, and ended ones that still hold claims.
local answers = {}
local function add(session)
  local fields = call('HMGET', T .. 's:' .. session, 'worker', 'open', 'opened', 'beat', 'lease')
  if fields[1] then answers[#answers + 1] = { session, unpack(fields) } end
end
for _, session in ipairs(call('ZRANGE', T .. 'so', 0, -1)) do add(session) end
for _, session in ipairs(call('SMEMBERS', T .. 'se')) do add(session) end
return answers
