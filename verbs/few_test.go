package verbs_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/verbs"
)

func init() { roles["few"] = fewDescriptors }

// TestFewDescriptors runs the role in a separate process, because the limit applies to the process.
func TestFewDescriptors(t *testing.T) {
	d := startDaemon(t)
	c := exec.Command(must(os.Executable())(t))
	c.Env = append(os.Environ(), roleVariable+"=few", "URDMA_SOCKET="+d.Socket,
		fmt.Sprintf("URDMAD_PID=%d", d.Cmd.Process.Pid))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A way creates an object with descriptors, and destroys it if that succeeds.
type way struct {
	name string
	try  func() error
}

func fewDescriptors() int {
	if err := tryFew(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func tryFew() error {
	c, err := verbs.Open("")
	if err != nil {
		return err
	}
	defer c.Close()
	x, err := c.Devices()[0].Open()
	if err != nil {
		return err
	}
	l, err := c.Listen(":0") // also makes the event channel, which is kept
	if err != nil {
		return err
	}
	for _, w := range ways(c, x) {
		if err := w.check(); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return errors.Join(l.Close(), x.Close()) // EBUSY if an object is left
}

func ways(c *verbs.Client, x *verbs.Context) []way {
	closing := func(made interface{ Close() error }, err error) error {
		if err != nil {
			return err
		}
		return made.Close()
	}
	return []way{
		{"Open", func() error { return tried(verbs.Open("")) }},
		{"Device.Open", func() error { return tried(c.Devices()[0].Open()) }},
		{"CreateCompChannel", func() error { return tried(x.CreateCompChannel()) }},
		{"CreateCQ", func() error { return tried(x.CreateCQ(16, nil)) }},
		{"CreateQP", func() error {
			pd, err := x.AllocPD()
			if err != nil {
				return err
			}
			q, err := x.CreateCQ(16, nil)
			if err != nil {
				return errors.Join(err, pd.Close())
			}
			qp, err := pd.CreateQP(q, q, verbs.QPOptions{})
			return errors.Join(closing(qp, err), q.Close(), pd.Close())
		}},
		{"first Listen", func() error {
			other, err := verbs.Open("")
			if err != nil {
				return err
			}
			l, err := other.Listen(":0")
			return errors.Join(closing(l, err), other.Close())
		}},
	}
}

func tried[T interface{ Close() error }](made T, err error) error {
	if err != nil {
		return err
	}
	return made.Close()
}

// check tries every number of free descriptors that is too small: the call must fail with EMFILE and leave no
// descriptor open, here or in urdmad.
func (w *way) check() error {
	if err := w.try(); err != nil {
		return err
	}
	ours, urdmads := descriptorsOf("self"), descriptorsOf(os.Getenv("URDMAD_PID"))
	needed := -1
	for n := range 16 {
		err := w.with(n)
		if err == nil {
			needed = n
			break
		}
		if !errors.Is(err, syscall.EMFILE) || errors.Is(err, verbs.ErrNoDaemon) || errors.Is(err, verbs.ErrVersion) {
			return fmt.Errorf("with %d descriptors: %w", n, err)
		}
	}
	if needed < 1 {
		return fmt.Errorf("it worked with %d descriptors", needed)
	}
	o, u := 0, 0
	for range 6000 { // urdmad closes a connection's descriptors a moment after its end
		o, u = descriptorsOf("self")-ours, descriptorsOf(os.Getenv("URDMAD_PID"))-urdmads
		if o <= 0 && u <= 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%d descriptors left here, %d in urdmad", o, u)
}

// with runs try with n descriptors free.
func (w *way) with(n int) error {
	limit := unix.Rlimit{Cur: 100, Max: 100}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	var taken []int
	for {
		fd, err := unix.Dup(2)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	for ; n > 0; n-- {
		unix.Close(taken[len(taken)-1])
		taken = taken[:len(taken)-1]
	}
	defer func() {
		for _, fd := range taken {
			unix.Close(fd)
		}
	}()
	return w.try()
}

// descriptorsOf counts a process's descriptors.
func descriptorsOf(pid string) int {
	entries, err := os.ReadDir("/proc/" + strings.TrimSpace(pid) + "/fd")
	if err != nil {
		panic(err)
	}
	return len(entries)
}
