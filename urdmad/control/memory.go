package control

import (
	"cmp"
	"fmt"
	"os"
	"syscall"

	"urdma/ancillary"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/control/process"
	"urdma/urdmad/core/mem"
)

// checkedMem takes the client's /proc/self/mem from the message. It returns nil if the descriptor
// is missing or another file; then only shared memory can be registered.
func (x *Session) checkedMem() *os.File {
	f, err := x.checked(process.CheckMem)
	if err != nil {
		x.s.Log.Warn("no fallback path for a client", "client", x.name, "error", err)
	}
	if f == nil {
		return nil
	}
	return f.OS("memory of a client")
}

// checked takes a file of the client's /proc/self from the message; nil without an error if there is
// none.
func (x *Session) checked(check func(f process.Descriptor, pid, uid int) error) (*ancillary.File, error) {
	f := x.TakeFile()
	if f == nil {
		return nil, nil
	}
	err := fmt.Errorf("%w: looking at it takes too long", process.ErrNotMem)
	var found error
	if x.Within(account.BlockingTimeout, func() { found = check(f, x.Owner.PID, x.Owner.UID) }) {
		err = found
	}
	if err == nil {
		return f, nil
	}
	x.Closer().Close(f)
	return nil, err
}

// StartOnDemand is StartFallback for on-demand paging, and provides Mappings. The first request must
// bring the client's /proc/self/maps.
func (x *Session) StartOnDemand() error {
	if err := x.StartFallback(); err != nil || x.mappings != nil {
		return err
	}
	if err := x.Take(&oneDescriptor); err != nil {
		return err
	}
	var m *process.Mappings
	f, err := x.checked(func(f process.Descriptor, pid, uid int) (err error) {
		if err = process.CheckMaps(f, pid, uid); err == nil {
			// It waits for the client's memory, too.
			m, err = process.NewMappings(f.(*ancillary.File).OS("mappings of a client"))
		}
		return err
	})
	if f == nil {
		x.Give(&oneDescriptor)
		return fmt.Errorf("control: on-demand paging needs /proc/self/maps: %w", cmp.Or(err, error(syscall.EBADF)))
	}
	x.mappings = m
	return nil
}

// Mappings says which memory the client's process could access, after StartOnDemand.
func (x *Session) Mappings() *process.Mappings { return x.mappings }

var oneDescriptor = account.Amounts{account.Descriptors: 1}

// endMappings is called after the mem.Space is closed.
func (x *Session) endMappings() {
	if x.mappings != nil {
		_ = x.mappings.Close() // procfs keeps nothing that could fail to be written
		x.mappings = nil
		x.Give(&oneDescriptor)
	}
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

// fileAmounts returns the resources of memory for queues.
func fileAmounts(bytes int) *account.Amounts {
	return &account.Amounts{account.QueueBytes: uint64(bytes), account.Mappings: 1}
}

// QueueMemory takes a queue's resources and makes its memory of so many bytes, heads included. If
// the client has a pool, the memory is in the pool and at is its location; otherwise it is a file
// of its own.
func (x *Session) QueueMemory(name string, bill *account.Amounts, heads, bytes uint32) (m *memfd.Shared, at memfd.Place,
	err error) {
	if x.pool == nil || bytes > memfd.MostPart {
		m, err = x.NewQueueMemory(name, bill, max(4096, (bytes+4095)&^4095))
		return m, at, err
	}
	if err := x.Take(bill); err != nil {
		return nil, at, err
	}
	if m, at, err = x.pool.New(int(heads), int(bytes-heads)); err != nil {
		x.Give(bill)
	}
	return m, at, err
}

// NewQueueMemory adds a file of so many bytes to a queue's resources, takes them and makes the file.
func (x *Session) NewQueueMemory(name string, bill *account.Amounts, bytes uint32) (*memfd.Shared, error) {
	bill[account.QueueBytes] += uint64(bytes)
	bill[account.Mappings]++
	if err := x.Take(bill); err != nil {
		return nil, err
	}
	m, err := memfd.New(name, int(bytes))
	if err != nil {
		x.Give(bill)
	}
	return m, err
}
