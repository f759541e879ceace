package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// Greeting has the contents of urdmad's response to HELLO.
type Greeting struct {
	Devices int
	Workers int
	Bells   []byte // the doorbell memory, with a section for each worker
	kicks   []int  // the kick socket of each worker
}

// Greet sends HELLO, the first request.
func (s *Session) Greet(ctx context.Context) (*Greeting, error) {
	req := abi.HelloRequest{ABIVersion: abi.Version, PID: uint32(os.Getpid())}
	copy(req.Command[:len(req.Command)-1], filepath.Base(os.Args[0]))
	memory, err := ownMemory()
	if err != nil {
		return nil, err
	}
	defer CloseAll([]int{memory}) // -1 is harmless
	var resp abi.HelloResponse
	fds, err := Call(ctx, s, abi.Hello, &req, &resp, memory, AnyFDs)
	if resp.ABIVersion != 0 && resp.ABIVersion != abi.Version {
		CloseAll(fds)
		return nil, fmt.Errorf("%w: urdmad has %d, this program %d", ErrVersion, resp.ABIVersion, abi.Version)
	}
	if err != nil {
		return nil, err
	}
	if len(fds) == 0 || len(fds) != 1+int(resp.Workers) ||
		uint64(resp.DoorbellBytes) < uint64(resp.Workers)*uint64(abi.Size[abi.Doorbells]()) {
		CloseAll(fds)
		return nil, fmt.Errorf("verbs: doorbells of %d bytes and %d descriptors for %d workers: %w", resp.DoorbellBytes,
			len(fds), resp.Workers, unix.EPROTO)
	}
	bells, err := Map(fds[0], int(resp.DoorbellBytes))
	if err != nil {
		CloseAll(fds[1:])
		return nil, err
	}
	if err := s.inject(ctx); err != nil {
		Unmap(bells)
		CloseAll(fds[1:])
		return nil, err
	}
	return &Greeting{Devices: int(resp.NumDevices), Workers: int(resp.Workers), Bells: bells, kicks: fds[1:]}, nil
}

// inject sends urdmad the faults that this process requests (urdma inject).
func (s *Session) inject(ctx context.Context) error {
	text := os.Getenv("URDMA_INJECT")
	if strict := os.Getenv("URDMA_STRICT"); strict != "" && strict != "0" {
		text = "strict " + strict + "; " + text
	}
	if text == "" {
		return nil
	}
	_, err := s.Inject(ctx, abi.InjectStart, text)
	return err
}

// Inject sends urdmad statements of urdma inject that concern this session; flags are abi.Inject*.
func (s *Session) Inject(ctx context.Context, flags uint32, text string) (resp abi.InjectResponse, err error) {
	req := abi.InjectRequest{Flags: flags}
	if len(text) >= len(req.Text) {
		return resp, fmt.Errorf("verbs: the errors to inject and strict's behaviours have %d bytes, expected %d at most: %w",
			len(text), len(req.Text)-1, unix.EINVAL)
	}
	copy(req.Text[:], text)
	if _, err := Call(ctx, s, abi.Inject, &req, &resp, -1, 0); err != nil {
		return resp, fmt.Errorf("verbs: urdmad refuses to inject %q: %w", text, err)
	}
	for _, p := range resp.Post[:min(resp.Posts, abi.InjectPosts)] {
		req, cleared := abi.InjectRequest{Flags: abi.InjectOwn}, abi.InjectResponse{}
		copy(req.Text[:], fmt.Sprintf("clear %d", p.Number))
		_, _ = Call(ctx, s, abi.Inject, &req, &cleared, -1, 0) // fails only with the session
		err = fmt.Errorf("verbs: injecting %q: only liburdma.so refuses posts: %w", text, unix.EOPNOTSUPP)
	}
	return resp, err
}

// ownMemory opens /proc/self/mem, through which urdmad reaches this process's memory. Without it (-1) only
// memory of files that urdmad maps, too, can be registered.
func ownMemory() (int, error) {
	fd, err := unix.Open("/proc/self/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return -1, fmt.Errorf("verbs: /proc/self/mem: %w", err)
	}
	if err != nil {
		return -1, nil
	}
	return fd, nil
}

var kickByte = []byte{1}

// Kick wakes a sleeping worker. If the socket is full, enough wake-ups are on their way.
func (g *Greeting) Kick(worker int) {
	_ = unix.Send(g.kicks[worker], kickByte, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// Release unmaps and closes the contents of the greeting.
func (g *Greeting) Release() {
	Unmap(g.Bells)
	CloseAll(g.kicks)
}
