package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urdma/test/programtest"
	"urdma/verbs/abi"
)

const root = "../../.."

// library builds liburdma.so as the Makefile does and returns its path.
var library = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("make", "-s", "-C", root, "-f", "verbs/lib/lib.mk", "build/liburdma.so").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return filepath.Abs(filepath.Join(root, "build/liburdma.so"))
})

func preload(t *testing.T) string {
	t.Helper()
	path, err := library()
	if err != nil {
		t.Fatalf("building liburdma.so: %v\n%s", err, path)
	}
	return path
}

// program builds the C cases, linked against the real libibverbs as other programs are.
func program(t *testing.T) string {
	t.Helper()
	sources, _ := filepath.Glob("testdata/*.c")
	return programtest.Compile(t, filepath.Join(t.TempDir(), "verbs"),
		append(sources, "-libverbs", "-lpthread", "-ldl")...)
}

// run runs a program with liburdma.so and the socket of d; a test that hangs ends with an error.
func run(t *testing.T, d *fakeUrdmad, env []string, argv ...string) (string, error) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(os.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+d.path)
	c.Env = append(c.Env, env...)
	guard := time.AfterFunc(10*time.Minute, func() { c.Process.Kill() })
	defer guard.Stop()
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestCases(t *testing.T) {
	binary := program(t)
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(names)) {
		t.Run(name, func(t *testing.T) {
			d := startUrdmad(t)
			d.prepare(name)
			out, err := run(t, d, nil, binary, name)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if name == "mismatch" && !strings.Contains(out, "urdmad speaks ABI version 99") {
				t.Errorf("no line about the version in %q", out)
			}
			if want := []uint32{0, 2, 1}; name == "vectors" && !slices.Equal(d.vectors, want) {
				t.Errorf("completion vectors %v, expected %v", d.vectors, want)
			}
			if name == "nobody" && !(strings.Contains(out, "cannot reach urdmad at "+d.path) &&
				strings.Contains(out, "urdma run -- PROGRAM")) {
				t.Errorf("no line about the socket in %q", out)
			}
		})
	}
}

func TestPersonalities(t *testing.T) {
	binary := program(t)
	for transport, want := range map[string]string{
		// node type, transport type, link layer, LID, types (enum ibv_gid_type) and GIDs
		"iwarp": "4 1 2 0x0 0 00000000000000000000ffff0a010203",
		"roce": "1 0 2 0x0 1 fe8000000000000000005efe0a010203 2 fe8000000000000000005efe0a010203" +
			" 1 00000000000000000000ffff0a010203 2 00000000000000000000ffff0a010203",
		"ib": "1 0 1 0x203 0 fe80000000000000000000fffe010203",
	} {
		out, err := run(t, startUrdmad(t), []string{"URDMA_TRANSPORT=" + transport}, binary, "gids")
		if err != nil || !strings.HasSuffix(strings.TrimSpace(out), want) {
			t.Errorf("%s: %v, %q, expected %q", transport, err, out, want)
		}
	}
}

func TestIBNeedsAUnicastLID(t *testing.T) {
	d := startUrdmad(t)
	d.device.Addr = abi.Addr{Family: syscall.AF_INET, Addr: [16]byte{10, 1, 0xc0}}
	out, err := run(t, d, []string{"URDMA_TRANSPORT=ib"}, program(t), "nobody")
	if err != nil || !strings.Contains(out, "no unicast LID") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestTrust: /tmp is writable by everybody, so a folder there that a group may write is not trusted.
func TestTrust(t *testing.T) {
	uid := 40000 + uint32(os.Getpid()%20000) // a user id that no user and no other run has
	if os.Getuid() != 0 {
		t.Skip("needs root, to run as a user without a urdmad of its own")
	}
	dir := fmt.Sprintf("/tmp/urdma-%d", uid)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := startUrdmadAt(t, filepath.Join(dir, "urdmad.sock"))
	if err := errors.Join(os.Chown(dir, int(uid), int(uid)), os.Chown(d.path, int(uid), int(uid))); err != nil {
		t.Fatal(err)
	}
	lib, binary := publicCopy(t, preload(t)), publicCopy(t, program(t))
	for mode, name := range map[os.FileMode]string{0o700: "devices", 0o755: "devices", 0o770: "nobody", 0o777: "nobody"} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(binary, name)
		c.Env = []string{"LD_PRELOAD=" + lib}
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("mode %o, case %s: %v\n%s", mode, name, err, out)
		}
	}
}

// publicCopy copies a file to a place where every user can read it.
func publicCopy(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "urdma-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	content, err := os.ReadFile(path)
	to := filepath.Join(dir, filepath.Base(path))
	if err := errors.Join(err, os.WriteFile(to, content, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return to
}
