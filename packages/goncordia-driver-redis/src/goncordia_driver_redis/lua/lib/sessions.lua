-- Looks at the keys that change when a session ends.
local function look_at_session(session)
  expect('HLEN', T .. 's:' .. session)
  expect('ZCARD', T .. 'c:' .. session)
  expect('ZCARD', T .. 'so')
  expect('SCARD', T .. 'se')
end

-- Ends a session for good.
local function end_session(session)
  local key = T .. 's:' .. session
  call('HSET', key, 'open', 0)
  call('ZREM', T .. 'so', session)
  if call('EXISTS', T .. 'c:' .. session) == 1 then
    call('SADD', T .. 'se', session)
  else
    call('EXPIRE', key, 86400)
  end
end
