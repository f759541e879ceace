package main

import (
	"os"
	"time"

	"urdma/urdma/inspect"
)

// about is what a snapshot says of this process.
func (d *daemon) about() inspect.Daemon {
	return inspect.Daemon{Version: version, PID: os.Getpid(), UID: os.Getuid(), Started: time.Now(), Socket: d.cfg.Socket,
		Config: d.cfg.Source}
}

// loop is what the worker has done, at most 1,024 turns ago.
func (d *daemon) loop() inspect.Loop {
	s := d.worker.Stats()
	return inspect.Loop{Turns: s.Turns, BusyTurns: s.BusyTurns, Yields: s.Yields, Sleeps: s.Sleeps, Wakes: s.Wakes,
		Hogs: s.Hogs, AsleepNs: s.AsleepNs, YieldedNs: s.YieldedNs, LongestGapNs: int64(s.LongestGap)}
}
