package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/worker"
)

// Arguments, all numbers: memory fd, its size, both eventfds, the number of this daemon, the longest delay of an
// acknowledgement in ns.
func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func numbers(args []string) (n [6]int, err error) {
	if len(args) != len(n) {
		return n, fmt.Errorf("floord: %d arguments, expected %d: build/floor starts it", len(args), len(n))
	}
	for i, a := range args {
		if n[i], err = strconv.Atoi(a); err != nil {
			return n, fmt.Errorf("floord: argument %d: %w", i+1, err)
		}
	}
	return n, nil
}

func serve(args []string) error {
	n, err := numbers(args)
	if err != nil {
		return err
	}
	sh, err := mapShared(n[0], n[1])
	if err != nil {
		return err
	}
	d := &daemon{sh: sh, me: n[4] & 1, kicks: [2]int{n[2], n[3]}, ackDefer: clock.Time(n[5])}
	worker.PrepareRuntime(1)
	w, err := worker.New(d, worker.DefaultPolicy(), worker.Hooks{Moved: sh.door[d.me].core.Store})
	if err != nil {
		return err
	}
	sh.ready.Add(1)
	if err := w.Start(); err != nil {
		return err
	}
	for sh.end.Load() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	err = w.Stop()
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) == nil {
		sh.door[d.me].cpu.Store(uint64(use.Utime.Nano() + use.Stime.Nano()))
	}
	if os.Getenv("FLOOR_STATS") != "" {
		fmt.Fprintf(os.Stderr, "daemon %d: %+v\n", d.me, w.Stats())
	}
	return err
}
