#!lua flags=no-writes
-- needs: jobs holders
-- How many jobs run, as the queues count them, and how many the sessions hold: both are equal unless
-- keys of ours were evicted, or deleted by somebody else.
local counted, held = 0, 0
for _, number in ipairs(ask('HVALS', T .. 'r')) do counted = counted + number end
for _, session in ipairs(holders()) do held = held + ask('ZCARD', T .. 'c:' .. session) end
return { counted, held }
