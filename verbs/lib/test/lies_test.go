package test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lie is a false answer of urdmad: the answer with this number is changed.
type lie struct {
	answer int
	name   string
	change func(body []byte, fds []int) ([]byte, []int)

	scribbles bool // instead, the memory that comes with it is changed later
	twice     bool // instead, it is sent twice
}

// falseWords are the values of a word in a lie.
var falseWords = []struct {
	name  string
	value func(uint32) uint32
}{
	{"0", func(uint32) uint32 { return 0 }}, {"1", func(uint32) uint32 { return 1 }},
	{"one more", func(v uint32) uint32 { return v + 1 }}, {"one less", func(v uint32) uint32 { return v - 1 }},
	{"2^31-1", func(uint32) uint32 { return 1<<31 - 1 }}, {"2^31", func(uint32) uint32 { return 1 << 31 }},
	{"2^32-1", func(uint32) uint32 { return 1<<32 - 1 }}, {"4097", func(uint32) uint32 { return 4097 }},
}

// liesAbout returns the lies about an answer of so many bytes and descriptors: each of its words with other values,
// other lengths, and other descriptors.
func liesAbout(answer, bytes, fds int) (lies []lie) {
	add := func(name string, change func(body []byte, fds []int) ([]byte, []int)) {
		lies = append(lies, lie{answer: answer, change: change,
			name: fmt.Sprintf("answer %d of %d bytes, %s", answer, bytes, name)})
	}
	for at := 0; at+4 <= bytes; at += 4 {
		for _, w := range falseWords {
			add(fmt.Sprintf("word at %d is %s", at, w.name), func(body []byte, fds []int) ([]byte, []int) {
				binary.NativeEndian.PutUint32(body[at:], w.value(binary.NativeEndian.Uint32(body[at:])))
				return body, fds
			})
		}
	}
	for _, n := range []int{0, 4, 15, bytes - 1, bytes + 1, bytes + 64} {
		add(fmt.Sprintf("%d bytes long", n), func(body []byte, fds []int) ([]byte, []int) {
			return append(body, make([]byte, 64)...)[:n], fds
		})
	}
	if fds > 0 {
		add("without descriptors", func(body []byte, fds []int) ([]byte, []int) { return body, nil })
		add("a descriptor more", func(body []byte, fds []int) ([]byte, []int) { return body, append(slices.Clone(fds), fds[0]) })
		add("descriptors of an empty file", func(body []byte, fds []int) ([]byte, []int) {
			empty, _ := unix.MemfdCreate("empty", unix.MFD_CLOEXEC)
			return body, slices.Repeat([]int{empty}, len(fds)) // stays open until the test ends
		})
	}
	return lies
}

// TestUrdmadLies: a program whose urdmad gives a false answer gets an error, and does not crash. (It may wait for what
// such a urdmad never does.)
func TestUrdmadLies(t *testing.T) {
	binary := sanitized(t, "address,undefined")
	for _, name := range []string{"devices", "gids", "memory", "events", "resize", "pollex", "async", "unsupported"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lies []lie
			honest := startUrdmad(t)
			count := 0
			honest.lie = func(body []byte, fds []int) ([]byte, []int) {
				lies = append(lies, liesAbout(count, len(body), len(fds))...)
				count++
				return body, fds
			}
			if err := told(honest, binary, name); err != nil {
				t.Fatal(err)
			}
			drawn := 20
			if os.Getenv("URDMA_LONG") != "" {
				drawn = 400
			}
			for _, i := range rand.Perm(len(lies))[:min(drawn, len(lies))] {
				d, l, count := startUrdmad(t), lies[i], 0
				d.lie = func(body []byte, fds []int) ([]byte, []int) {
					count++
					if count-1 == l.answer {
						return l.change(body, fds)
					}
					return body, fds
				}
				if err := told(d, binary, name); err != nil {
					t.Errorf("%s: %v", l.name, err)
				}
				d.die()
			}
			t.Logf("%d of %d lies told", drawn, len(lies))
		})
	}
}

// told runs a case on a urdmad, and returns an error if it crashes.
func told(d *fakeUrdmad, binary, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "setarch", "-R", binary, name)
	c.Env = append(os.Environ(), "LD_PRELOAD=", "URDMA_SOCKET="+d.path, "ASAN_OPTIONS=detect_leaks=0:exitcode=99")
	out, err := c.CombinedOutput()
	if said := string(out); ctx.Err() == nil && (c.ProcessState.ExitCode() > 2 || c.ProcessState.ExitCode() < 0) ||
		strings.Contains(said, "runtime error") || strings.Contains(said, "Sanitizer") {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}
