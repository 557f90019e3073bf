"""The seeded simulation: real pools and clients on virtual time, a bad network, and a ledger.

A seed decides everything: what the network does to each request, which process is stopped, killed,
cut off or told to go and when, what the handlers do. The same seed gives the same trace.

- `loop`, `process`: virtual time; processes that can be stopped and killed, with their own clocks
- `network`, `driver`, `backend`, `heart`: the way from an engine to the memory driver, what goes
  wrong on it, and the heartbeat thread's stand-in
- `work`, `clients`, `chaos`: what handlers do, what clients ask for, what befalls processes
- `schedulers`: periodic jobs, who enqueues them, and what befalls those
- `world`, `seed`, `options`: one seed, put together and run
- `ledger` (`books`, `entries`, `requests`, `effects`, `runs`, `balance`): what must hold
- `planting`, `bugs`: bugs planted on purpose, which the ledger must notice
- `stage`: directed scenes in the same world
- `cli`: run seeds by hand
"""
