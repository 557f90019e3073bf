#!lua flags=no-writes
-- needs: jobs holders lines lists
-- Counts all jobs in several ways, which agree unless keys of ours were evicted, or deleted by
-- somebody else. Key by key, and not job by job, but for those that run.
-- Answers: how many run, as the queues count them and as the sessions hold them; how many of these
-- have groups, as the groups count them and as they are held; how many there are of all, as the
-- index counts them and as they stand in lines and lists; and 1 if a key is known to be missing.
local function sum(numbers)
  local total = 0
  for _, number in ipairs(numbers) do total = total + number end
  return total
end

local counted, grouped = sum(ask('HVALS', T .. 'r')), sum(ask('HVALS', T .. 'gr'))
local held, grouped_held = 0, 0
for _, session in ipairs(holders()) do
  for _, id in ipairs(ask('ZRANGE', T .. 'c:' .. session, 0, -1)) do
    held = held + 1
    local flags = byte(ask('GETRANGE', T .. 'j:' .. id, 0, 0))
    if flags and band(flags, GROUPED) ~= 0 then grouped_held = grouped_held + 1 end
  end
end

local indexed = -sum(ask('HVALS', T .. 'in'))
for _, start in ipairs(ask('ZRANGE', T .. 'i', 0, -1)) do
  indexed = indexed + ask('STRLEN', T .. 'i:' .. start) / 16
end

local placed, lost = math.max(counted, held), call('EXISTS', T .. 'lost')
if not each_list(function(size, key) placed = placed + ask(size, key) end) then lost = 1 end
return { counted, held, grouped, grouped_held, indexed, placed, lost }
