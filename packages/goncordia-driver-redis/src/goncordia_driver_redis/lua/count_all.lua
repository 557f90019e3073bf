#!lua flags=no-writes
-- needs:
-- How many jobs there are, by the index: the ids of so many chunks, less those that are gone.
-- ARGV: time, the bound to start from, how many chunks. Answers: jobs, and the last start or ''.
local starts = call('ZRANGEBYLEX', T .. 'i', ARGV[2], '+', 'LIMIT', 0, ARGV[3])
local count = 0
for _, start in ipairs(starts) do
  count = count + call('STRLEN', T .. 'i:' .. start) / 16
    - tonumber(call('HGET', T .. 'in', start) or 0)
end
return { count, #starts == tonumber(ARGV[3]) and starts[#starts] or '' }
