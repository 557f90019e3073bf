#!lua flags=allow-oom
-- needs:
-- Renews an open session, and gives its claims that are to be cancelled: ids and numbers in turn.
-- An ended session stays ended: nil. A gap of more than half a lease restarts its contact.
-- ARGV: time, session, lease in microseconds.
local key = T .. 's:' .. ARGV[2]
local open, lease, beat = unpack(ask('HMGET', key, 'open', 'lease', 'beat'))
if open ~= '1' then return false end
expect('ZCARD', T .. 'so')
local cancels = {}
for _, id in ipairs(ask('SMEMBERS', T .. 'cr:' .. ARGV[2])) do
  local fetch_no = ask('ZSCORE', T .. 'c:' .. ARGV[2], id)
  if fetch_no then
    cancels[#cancels + 1] = id
    cancels[#cancels + 1] = tonumber(fetch_no)
  end
end
if now - beat > lease / 2 then call('HSET', key, 'since', now) end
call('HSET', key, 'lease', ARGV[3], 'beat', now)
call('ZADD', T .. 'so', now + ARGV[3], ARGV[2])
return cancels
