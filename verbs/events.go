package verbs

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// eventFile is our end of an event socket: one message a read, waited for by
// the Go runtime's poller.
type eventFile struct {
	c *Client
	f *os.File
	// reading holds a value while somebody reads: deadlines are the file's, so
	// one waits for a message at a time.
	reading chan struct{}
}

func newEventFile(c *Client, fd int, name string) (*eventFile, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd) // nothing to do about a failed close
		return nil, err
	}
	e := &eventFile{c: c, f: os.NewFile(uintptr(fd), name), reading: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		e.f.Close()
		return nil, ErrClosed
	}
	c.files[e] = struct{}{}
	return e, nil
}

func (e *eventFile) close() {
	e.c.mu.Lock()
	delete(e.c.files, e)
	e.c.mu.Unlock()
	e.f.Close()
}

// receive waits for the next message of type T, as long as ctx lasts.
func receive[T any](ctx context.Context, e *eventFile) (v T, err error) {
	select {
	case e.reading <- struct{}{}:
		defer func() { <-e.reading }()
	case <-ctx.Done():
		return v, ctx.Err()
	}
	stop := context.AfterFunc(ctx, func() { _ = e.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var buf [128 + abi.MaxPrivate]byte
	n, err := e.read(ctx, buf[:])
	if err != nil {
		return v, err
	}
	v, ok := abi.Decode[T](buf[:n])
	if !ok {
		return v, e.c.lost(errors.New("event message of an unknown length"))
	}
	return v, nil
}

// read reads one message. The deadline that ends it may be a former reader's,
// set too late for it: then it is taken back, and only after that ctx is looked
// at, which ends before its own deadline is set.
func (e *eventFile) read(ctx context.Context, buf []byte) (int, error) {
	for {
		n, err := e.f.Read(buf)
		switch {
		case err == nil && n > 0:
			return n, nil
		case errors.Is(err, os.ErrClosed):
			return 0, ErrClosed
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, e.c.lost(nil) // hung up
		}
		_ = e.f.SetReadDeadline(time.Time{})
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}
