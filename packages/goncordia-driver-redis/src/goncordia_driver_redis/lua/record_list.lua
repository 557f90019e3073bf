#!lua flags=no-writes
-- needs:
-- Records by name: those after a name (or from it, with '['), up to a bound, at most so many.
-- ARGV: time, from, to, limit. Answers: name, value, version in turn.
local answers = {}
for _, name in ipairs(call('ZRANGEBYLEX', T .. 'kn', ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])) do
  local value, version = unpack(call('HMGET', T .. 'k:' .. name, 'v', 'n'))
  for _, each in ipairs({ name, value or '', version or 0 }) do answers[#answers + 1] = each end
end
return answers
