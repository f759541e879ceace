package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/verbs/abi"
)

// ErrNotRunning says that no process listens on the control socket.
var ErrNotRunning = errors.New("no urdmad is running")

// ErrStopped says that a signal or a debugger has stopped urdmad.
var ErrStopped = errors.New("urdmad is stopped")

// ErrNoAnswer says that urdmad runs and has not answered in time, as one that is starting on a busy machine.
var ErrNoAnswer = errors.New("does not answer")

// maxSnapshot limits how much of a snapshot is read: enough for some million objects.
const maxSnapshot = 1 << 30

const (
	// answerTime is how long urdmad may take to answer.
	answerTime = 10 * time.Second
	// silence is the wait after which the client checks why urdmad doesn't answer.
	silence = 2 * time.Second
)

// Source requests snapshots from one urdmad, over one connection.
type Source struct {
	path string
	conn *net.UnixConn
}

// Open connects to a urdmad's control socket.
func Open(socket string) (*Source, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		return nil, notConnected(socket, err)
	}
	return &Source{socket, c}, nil
}

// Path is the path of the control socket.
func (s *Source) Path() string { return s.path }

// Close ends the connection.
func (s *Source) Close() error { return s.conn.Close() }

// Fetch requests a snapshot.
func (s *Source) Fetch() (*Snapshot, error) {
	text, err := s.FetchJSON()
	if err != nil {
		return nil, err
	}
	snap := new(Snapshot)
	if err := json.Unmarshal(text, snap); err != nil {
		return nil, fmt.Errorf("the snapshot of urdmad at %s: %w", s.path, err)
	}
	if snap.Format != Format {
		return nil, fmt.Errorf("urdmad at %s gives snapshots of format %d, expected %d: urdma and urdmad are of different "+
			"versions", s.path, snap.Format, Format)
	}
	return snap, nil
}

// FetchJSON requests a snapshot and returns it as urdmad wrote it.
func (s *Source) FetchJSON() ([]byte, error) {
	r, file, err := ask[abi.InspectResponse](s, &abi.Header{Type: abi.Inspect})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if r.Bytes > maxSnapshot {
		return nil, fmt.Errorf("urdmad at %s gave a snapshot of %d bytes, expected at most %d", s.path, r.Bytes, maxSnapshot)
	}
	text := make([]byte, r.Bytes)
	if _, err := file.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("reading the snapshot of urdmad at %s: %w", s.path, err)
	}
	return text, nil
}

// ask sends a request, whose length it fills in. It returns the response and the descriptor that came with it,
// which the caller owns.
func ask[R, Q any](s *Source, request *Q) (response R, file *os.File, err error) {
	b, file, err := s.exchange(abi.Bytes(request))
	if err != nil {
		return response, nil, err
	}
	response, ok := abi.Decode[R](b)
	if !ok || file == nil {
		if file != nil {
			file.Close()
		}
		return response, nil, fmt.Errorf("urdmad at %s answered with %d bytes, expected %d and a descriptor: urdma and "+
			"urdmad are of different versions",
			s.path, len(b), abi.Size[R]())
	}
	return response, file, nil
}

// exchange sends one request and receives its response. An errno in the response is returned as an error.
func (s *Source) exchange(request []byte) ([]byte, *os.File, error) {
	_ = s.conn.SetDeadline(time.Now().Add(answerTime)) // fails only on a closed connection, as does the next call
	abi.At[abi.Header](request, 0).Length = uint32(len(request))
	if _, err := s.conn.Write(request); err != nil {
		return nil, nil, s.explain(err)
	}
	b := make([]byte, abi.MaxMessage)
	oob := make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	_ = s.conn.SetReadDeadline(time.Now().Add(silence))
	n, oobn, _, _, err := s.conn.ReadMsgUnix(b, oob)
	if errors.Is(err, os.ErrDeadlineExceeded) && !stopped(s.peer()) {
		_ = s.conn.SetReadDeadline(time.Now().Add(answerTime - silence))
		n, oobn, _, _, err = s.conn.ReadMsgUnix(b, oob)
	}
	if err != nil || n == 0 {
		return nil, nil, s.explain(errors.Join(err, io.ErrUnexpectedEOF))
	}
	var file *os.File
	fds, _ := ancillary.Descriptors(oob[:oobn]) // unreadable data carries no descriptor
	for i, fd := range fds {
		if i == 0 {
			file = os.NewFile(uintptr(fd), "from urdmad")
		} else { // no response should have more than one
			_ = unix.Close(fd)
		}
	}
	size := abi.Size[abi.Header]()
	h, ok := abi.Decode[abi.Header](b[:min(n, size)])
	switch {
	case !ok:
		err = fmt.Errorf("urdmad at %s answered with %d bytes, expected a header of %d", s.path, n, size)
	case h.Status != 0:
		err = &Refusal{s.path, syscall.Errno(h.Status)}
	default:
		return b[:n], file, nil
	}
	if file != nil {
		file.Close()
	}
	return nil, nil, err
}

// Refusal is an errno in urdmad's response.
type Refusal struct {
	socket string
	Errno  syscall.Errno
}

func (r *Refusal) Error() string { return fmt.Sprintf("urdmad at %s: %v", r.socket, r.Errno) }

// Unwrap returns the errno.
func (r *Refusal) Unwrap() error { return r.Errno }

// explain names the usual reasons why urdmad closes a connection.
func (s *Source) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if pid := s.peer(); stopped(pid) {
			return fmt.Errorf("%w: process %d, at %s; kill -CONT %[2]d lets it go on", ErrStopped, pid, s.path)
		}
		return fmt.Errorf("urdmad at %s %w within %v", s.path, ErrNoAnswer, answerTime)
	}
	return fmt.Errorf("urdmad at %s hung up: it has ended, or has too many connections that say nothing: %w", s.path, err)
}
