package control

import (
	"fmt"
	"os"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/process"
	"urdma/urdmad/core/mem"
)

// checkedMem takes the client's /proc/self/mem from the message. It returns nil if the descriptor
// is missing or another file; then only shared memory can be registered.
func (x *Session) checkedMem() *os.File {
	f := x.TakeFile()
	if f == nil {
		return nil
	}
	err := fmt.Errorf("%w: looking at it takes too long", process.ErrNotMem)
	var found error
	if x.Within(account.BlockingTimeout, func() { found = process.CheckMem(f, x.Owner.PID, x.Owner.UID) }) {
		err = found
	}
	if err == nil {
		return f
	}
	x.s.Log.Warn("no fallback path for a client", "client", x.name, "error", err)
	x.Closer().Close(f)
	return nil
}

// StartFallback makes sure that the fallback path works. Its thread may wait for the client's
// pages for ever, so it counts as a resource until its last job has ended.
func (x *Session) StartFallback() error {
	if x.fallback {
		return nil
	}
	if x.space.Direct() {
		if err := x.space.Fallback(); err != nil {
			return fmt.Errorf("%w: %w", err, syscall.EOPNOTSUPP)
		}
		return nil
	}
	if err := x.Take(&oneFallback); err != nil {
		return err
	}
	if err := x.space.Fallback(); err != nil {
		x.Give(&oneFallback)
		return fmt.Errorf("%w: %w", err, syscall.EOPNOTSUPP)
	}
	x.fallback = true
	return nil
}

var oneFallback = account.Amounts{account.Fallbacks: 1}

// endFallback is called before the mem.Space is closed.
func (x *Session) endFallback() {
	if x.fallback {
		x.fallback = false
		x.space.Submit(mem.Job{Write: true, Done: func(error) { x.Give(&oneFallback) }})
	}
}
