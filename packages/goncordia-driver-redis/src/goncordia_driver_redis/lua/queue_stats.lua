#!lua flags=no-writes
-- needs: lines
-- Counts the waiting and running jobs of queues, line by line and not job by job.
-- ARGV: time, names. Answers of each: due, due later, of those after a failure, running, and when
-- the first became due or nothing.
local answers = {}
for n = 2, #ARGV do
  local name = ARGV[n]
  local due, later, oldest = 0, 0, math.huge
  local function add(key)
    due = due + call('ZCOUNT', key, '-inf', now)
    later = later + call('ZCOUNT', key, above(now), '+inf')
    oldest = math.min(oldest, tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or math.huge))
  end
  for _, kind in ipairs(call('SMEMBERS', T .. 'hq:' .. name)) do
    for _, line in ipairs(call('ZRANGE', heads_key(name, kind), 0, -1)) do
      if string.match(line, '^-?%d+:(.)') == 'p' then add(T .. 'l:' .. line) end
    end
  end
  for _, kind in ipairs(call('SMEMBERS', T .. 'hg:' .. name)) do
    add(parked_key(name, kind))
  end
  local failed = call('ZCOUNT', T .. 'f:' .. name, above(now), '+inf')
  local running = tonumber(call('HGET', T .. 'r', name) or 0)
  answers[n - 1] = { due, later, failed, running, oldest <= now and oldest or false }
end
return answers
