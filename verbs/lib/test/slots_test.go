package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/programtest"
)

// killRounds returns how often urdmad is killed.
func killRounds() int {
	if os.Getenv("URDMA_LONG") != "" {
		return 1000
	}
	return 30
}

func TestMain(m *testing.M) { os.Exit(programtest.Main(m)) }

// real is a real urdmad with a loopback port.
type real struct{ *programtest.Daemon }

func startReal(t *testing.T, args ...string) *real {
	t.Helper()
	return &real{programtest.Start(t, args...)}
}

// startWhole is startReal for a test of what is attached to urdmad.
func startWhole(t *testing.T) *real {
	t.Helper()
	if lab.Core() {
		t.Skip("needs what is attached to urdmad; URDMA_DAEMON names one without")
	}
	return startReal(t)
}

// run returns what a program writes to its standard output. The library writes to the other when urdmad is slow.
func (r *real) run(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	said, _ := r.outputs(t, env, argv...)
	return said
}

func (r *real) outputs(t *testing.T, env []string, argv ...string) (out, complaints string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(append(os.Environ(), env...), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+r.Socket,
		fmt.Sprintf("URDMAD_PID=%d", r.Cmd.Process.Pid))
	guard := time.AfterFunc(3*time.Minute, func() { c.Process.Kill() })
	defer guard.Stop()
	var both [2]strings.Builder
	c.Stdout, c.Stderr = &both[0], &both[1]
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &both[0], &both[1])
	}
	return both[0].String(), both[1].String()
}

func slotsProgram(t *testing.T) string {
	t.Helper()
	sources, _ := filepath.Glob("testdata/slots/*.c")
	return programtest.Compile(t, filepath.Join(t.TempDir(), "slots"),
		append(sources, "-lrdmacm", "-libverbs", "-lpthread")...)
}

// TestSlots runs a program on a real urdmad that checks when slots of its queues become free, and what it
// sees when urdmad is killed.
func TestSlots(t *testing.T) {
	t.Setenv("URDMA_TRANSPORT", "iwarp") // its queue pairs address each other by GID
	binary := slotsProgram(t)
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(names)) {
		rounds := 1
		if name == "killed" {
			rounds = killRounds()
		}
		t.Run(name, func(t *testing.T) {
			for range rounds {
				r := startReal(t)
				r.run(t, nil, binary, name)
				r.Kill()
			}
		})
	}
}
