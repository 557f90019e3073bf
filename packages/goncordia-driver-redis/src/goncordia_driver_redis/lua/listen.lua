#!lua flags=allow-oom
-- needs:
-- A new listener: every queue is called out again, whoever was told before.
call('DEL', T .. 'told')
