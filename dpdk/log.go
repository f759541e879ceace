package dpdk

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ealLog reads the log of the EAL and its drivers: each line is passed to slog, and the last lines are kept
// for error messages.
type ealLog struct {
	log *slog.Logger

	mu     sync.Mutex
	lines  []string
	marks  int
	marked chan int
}

const keptLines = 12

// captureLog redirects DPDK's log to a pipe and starts reading it.
func captureLog(log *slog.Logger) (*ealLog, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("dpdk: pipe for the EAL's log: %w", err)
	}
	if ret := C.urdma_log_to(C.int(p[1])); ret != 0 {
		return nil, fmt.Errorf("dpdk: redirecting the EAL's log: error %d", ret)
	}
	l := &ealLog{log: log, marked: make(chan int, 16)}
	go l.read(os.NewFile(uintptr(p[0]), "EAL log"))
	return l, nil
}

const markPrefix = "urdma-mark "

func (l *ealLog) read(r io.Reader) {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := nextLine(b)
		if err != nil {
			return
		}
		var n int
		if _, err := fmt.Sscanf(line, markPrefix+"%d", &n); err == nil {
			select {
			case l.marked <- n:
			default: // no caller of settle is waiting
			}
			continue
		}
		if line == "" {
			continue
		}
		l.log.Debug("DPDK: " + line)
		l.mu.Lock()
		if l.lines = append(l.lines, line); len(l.lines) > keptLines {
			l.lines = l.lines[1:]
		}
		l.mu.Unlock()
	}
}

// maxLine is the number of bytes kept of a line.
const maxLine = 4096

// nextLine reads a line of any length and returns its beginning. Reading must never stop: threads of the EAL,
// and the worker, would block on a full pipe.
func nextLine(b *bufio.Reader) (string, error) {
	line, cut, err := b.ReadLine()
	text := strings.TrimSpace(string(line))
	for cut && err == nil {
		_, cut, err = b.ReadLine()
	}
	return text, err
}

// begin discards the lines logged so far.
func (l *ealLog) begin() {
	l.settle()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
}

// tail returns the lines logged since begin, for the end of an error message.
func (l *ealLog) tail() string {
	l.settle()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return ""
	}
	return "; DPDK said: " + strings.Join(l.lines, " | ")
}

// settle waits until everything logged so far has been read: it writes a mark and waits for it.
func (l *ealLog) settle() {
	l.marks++
	mark := C.CString(fmt.Sprintf("%s%d\n", markPrefix, l.marks))
	defer C.free(unsafe.Pointer(mark))
	C.urdma_log_mark(mark)
	timeout := time.After(5 * time.Second)
	for {
		select {
		case n := <-l.marked:
			if n == l.marks {
				return
			}
		case <-timeout:
			return
		}
	}
}
