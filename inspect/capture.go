package inspect

import (
	"fmt"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Capture is a running capture. Its Reader has the frames. It must not be used by several goroutines at once.
type Capture struct {
	Reader ring.CaptureReader
	// RingBytes is the size of the ring that urdmad allocated.
	RingBytes uint32

	source *Source
	mem    []byte
}

// StartCapture asks urdmad to copy the frames that pass the filter into a ring, from now on. A Source has one
// capture at a time, which ends with the Source at the latest. It fails with *Refusal: EBUSY, too many captures
// run; ENODEV, no such device.
func (s *Source) StartCapture(filter abi.CaptureRequest) (*Capture, error) {
	filter.Header = abi.Header{Type: abi.Capture}
	r, file, err := ask[abi.CaptureResponse](s, &filter)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("the capture's ring: %w", err)
	}
	mem, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping the capture's ring: %w", err)
	}
	c := &Capture{source: s, mem: mem, RingBytes: r.DataBytes}
	if err := c.Reader.Init(mem, &r); err != nil {
		c.Close()
		return nil, fmt.Errorf("the capture of urdmad at %s: %w", s.path, err)
	}
	return c, nil
}

// Stop ends the capture. When it returns, no more frames are added to the ring.
func (c *Capture) Stop() error {
	_, file, err := c.source.exchange(abi.Bytes(&abi.Header{Type: abi.CaptureStop}))
	if file != nil {
		file.Close()
	}
	return err
}

// Mark sets a bookmark in every capture with events that the caller's user may see; urdmad keeps 95 bytes of the
// text. It fails with *Refusal: EINVAL, the text is empty.
func (s *Source) Mark(text string) error {
	m := abi.MarkRequest{Header: abi.Header{Type: abi.Mark}}
	copy(m.Text[:len(m.Text)-1], text)
	_, file, err := s.exchange(abi.Bytes(&m))
	if file != nil {
		file.Close()
	}
	return err
}

// Inject asks urdmad to carry out statements of package inject, and returns the number of the first rule among
// them, 0 for none; for "hits NUMBER" how many events the rule has hit. It fails with *Refusal: EPERM, EINVAL, ENOENT,
// ESRCH, ENODEV, ENOTUNIQ, ENXIO, EDQUOT; urdmad's log has the details.
func (s *Source) Inject(text string) (answer uint64, err error) {
	m := abi.InjectRequest{Header: abi.Header{Type: abi.Inject}}
	if len(text) >= len(m.Text) {
		return 0, fmt.Errorf("the scenario has %d bytes, expected %d at most", len(text), len(m.Text)-1)
	}
	copy(m.Text[:], text)
	b, file, err := s.exchange(abi.Bytes(&m))
	if file != nil {
		file.Close()
	}
	if err != nil {
		return 0, err
	}
	r, ok := abi.Decode[abi.InjectResponse](b)
	if !ok {
		return 0, fmt.Errorf("urdmad at %s answered with %d bytes, expected %d: urdma and urdmad are of different versions",
			s.path, len(b), abi.Size[abi.InjectResponse]())
	}
	if r.Asked != 0 {
		return r.Hits, nil
	}
	return uint64(r.Number), nil
}

// Gone reports whether urdmad has closed the connection: no more frames will come.
func (c *Capture) Gone() bool {
	raw, err := c.source.conn.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}} // poll(2) reports POLLHUP without a request
		n, err := unix.Poll(poll, 0)
		gone = err == nil && n > 0 && poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone || err != nil
}

// Close unmaps the ring; frames that Reader returned become invalid.
func (c *Capture) Close() {
	if c.mem != nil {
		_ = unix.Munmap(c.mem) // fails only for an address that is no mapping
		c.mem = nil
	}
}
