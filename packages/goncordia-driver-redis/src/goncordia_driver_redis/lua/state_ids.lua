#!lua flags=no-writes
-- needs:
-- The ids of all jobs that are in these states, unless they are more than so many: then nothing.
-- Only of running and finished ones: of the others there may be any number.
-- ARGV: time, how many, states.
local keys, count = {}, 0
local function add(key, size)
  keys[#keys + 1] = key
  count = count + call(size, key)
end
for n = 3, #ARGV do
  local state = ARGV[n]
  if state == 'running' then
    for _, session in ipairs(call('ZRANGE', T .. 'so', 0, -1)) do
      add(T .. 'c:' .. session, 'ZCARD')
    end
    for _, session in ipairs(call('SMEMBERS', T .. 'se')) do add(T .. 'c:' .. session, 'ZCARD') end
  else
    add(T .. 'd:' .. state, 'ZCARD')
    add(T .. 'dh:' .. state, 'ZCARD')
    add(T .. 'dk:' .. state, 'SCARD')
  end
end
if count > tonumber(ARGV[2]) then return false end
local ids = {}
for _, key in ipairs(keys) do
  local command = sub(key, #T + 1, #T + 3) == 'dk:' and 'SMEMBERS' or 'ZRANGE'
  local some = command == 'ZRANGE' and call(command, key, 0, -1) or call(command, key)
  ids[#ids + 1] = table.concat(some)
end
return table.concat(ids)
