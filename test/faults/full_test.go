package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/bystander"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// full is a shell script that runs "$@" in its own mount namespace, in which /tmp, /dev/shm and /run are small file
// systems without a free byte. $LAB is unchanged except $LAB/full, which is full, too.
const full = `
mount --make-rprivate /
mount --bind "$LAB" /mnt
for d in /tmp /dev/shm /run; do mount -t tmpfs -o size=128k,mode=1777 none $d; done
mkdir -p "$LAB"
mount --move /mnt "$LAB"
mkdir -p "$LAB/full"
mount -t tmpfs -o size=128k,mode=1777 none "$LAB/full"
for d in /tmp /dev/shm /run "$LAB/full"; do
	cat /dev/zero >$d/zeros 2>/dev/null || true
	if echo x 2>/dev/null >>$d/zeros; then echo "$d is not full"; exit 77; fi
done
exec "$@"
`

// inFull starts a program for which everything is full.
func inFull(t *testing.T, l *lab.Lab, env string, argv ...string) *lab.Process {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("file systems can be mounted only by root")
	}
	o := lab.Options{Env: []string{"PATH=" + os.Getenv("PATH"), "LAB=" + l.Dir, env}}
	p, err := l.Start(o, append([]string{"unshare", "--mount", "sh", "-ec", full, "sh"}, argv...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// configuration writes a urdma.json.
func configuration(t *testing.T, l *lab.Lab, name, vdev, socket string) string {
	t.Helper()
	file := filepath.Join(l.Dir, name+".json")
	text := fmt.Sprintf(`{ "ports": [ { "vdev": %q, "ipv4_address": "198.18.0.1/24" } ], "socket": %q, "log_level": "debug" }`, vdev, socket)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// ready waits for urdmad's line.
func ready(t *testing.T, p *lab.Process) {
	t.Helper()
	awaits(t, "urdmad is ready: "+p.Output(), patience, func() bool {
		if !p.Running() {
			t.Fatalf("urdmad ended:\n%s", p.Output())
		}
		return strings.Contains(p.Output(), "urdmad is ready")
	})
}

// TestFullFileSystems: urdmad and programs need no room in /tmp, /dev/shm or /run, except in their socket's directory
// for urdmad's files. If that is full, urdmad reports it and leaves no files.
func TestFullFileSystems(t *testing.T) {
	l := labtest.New(t)
	urdmad, urdma := l.Program("urdmad"), l.Program("urdma")
	socket := filepath.Join(l.Dir, "urdmad.sock")
	t.Run("serves", func(t *testing.T) {
		d := inFull(t, l, "", urdmad, "--config", configuration(t, l, "serves", "loopback", socket))
		defer d.Kill()
		ready(t, d)
		for _, argv := range [][]string{{"ibv_devinfo"}, {"rping", "-c", "-C", "3", "-V", "-a", "198.18.0.1"}} {
			server := inFull(t, l, "", urdma, "exec", "--socket", socket, "--", "rping", "-s", "-a", "198.18.0.1", "-C", "3")
			awaits(t, "rping's server", patience, func() bool {
				p, err := l.Start(lab.Options{}, urdma, "show", "listener", "--socket", socket, "--json")
				pid := fmt.Sprintf(`"pid": %d,`, server.PID()) // the last one's id may still be there
				return err == nil && p.Wait(patience) == nil && strings.Contains(p.Output(), pid)
			})
			p := inFull(t, l, "", append([]string{urdma, "exec", "--socket", socket, "--"}, argv...)...)
			if err := p.Wait(patience); err != nil {
				t.Errorf("%v: %v\n%s", argv, err, p.Output())
			}
			server.Kill()
		}
		p := inFull(t, l, "URDMA_SOCKET="+socket, urdma, "capture", "-o", "/tmp/x.pcapng")
		if err := p.Wait(patience); err == nil || !strings.Contains(p.Output(), "no space left on device") {
			t.Errorf("a capture to a full file system: %v\n%s", err, p.Output())
		}
	})
	t.Run("no room for its own files", func(t *testing.T) {
		in := filepath.Join(l.Dir, "full", "urdmad.sock")
		d := inFull(t, l, "", urdmad, "--config", configuration(t, l, "own", "loopback", in))
		if err := d.Wait(patience); err == nil || !strings.Contains(d.Output(), "no space left on device") {
			t.Errorf("urdmad without room for its files: %v\n%s", err, d.Output())
		}
	})
	t.Run("logs", func(t *testing.T) {
		d := inFull(t, l, "", "sh", "-c", `exec "$0" --config "$1" 2>>/tmp/zeros`, urdmad,
			configuration(t, l, "logs", "loopback", socket))
		defer d.Kill()
		var p *bystander.Pair
		awaits(t, "a connection with a urdmad that can't log", patience, func() bool {
			var err error
			p, err = bystander.New(t.Context(), socket, socket, "198.18.0.1:0", 1)
			return err == nil
		})
		defer p.Close()
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("environment abstraction layer", func(t *testing.T) {
		d := inFull(t, l, "", urdmad, "--config", configuration(t, l, "eal", "net_ring0", socket))
		defer d.Kill()
		ready(t, d)
	})
}
