package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// machine is a places with the given environment, in which only the given files exist.
func machine(env map[string]string, files ...string) places {
	has := func(p string) bool {
		for _, f := range files {
			if f == p || strings.HasPrefix(f, p+"/") {
				return true
			}
		}
		return false
	}
	return places{
		env: func(k string) string { return env[k] }, run: "/run", tmp: "/tmp", uid: 1000,
		isDir: has, exists: has, canMake: func(dir string) bool { return has(dir + "/writable") },
		trusted: func(socket string) bool { return !has(socket + "/planted") },
	}
}

func TestDefaultAndFoundSocket(t *testing.T) {
	const user, system, private = "/run/user/1000/urdma/urdmad.sock", "/run/urdma/urdmad.sock",
		"/tmp/urdma-1000/urdmad.sock"
	xdg := map[string]string{"XDG_RUNTIME_DIR": "/run/user/1000"}
	for _, c := range []struct {
		name        string
		m           places
		made, found string
	}{
		{"environment", machine(map[string]string{"URDMA_SOCKET": "/a/b", "XDG_RUNTIME_DIR": "/run/user/1000"},
			"/run/user/1000/x", system), "/a/b", "/a/b"},
		{"user session", machine(xdg, "/run/user/1000/x"), user, user},
		{"user session, daemon runs", machine(xdg, user), user, user},
		{"user session, only the system's daemon runs", machine(xdg, "/run/user/1000/x", system), user, system},
		{"runtime directory is gone", machine(xdg), private, private},
		{"relative runtime directory", machine(map[string]string{"XDG_RUNTIME_DIR": "run"}, "run/x"), private, private},
		{"no session, system's daemon", machine(nil, system), system, system},
		{"root", machine(nil, "/run/urdma/writable"), system, system},
		{"root, daemon in the private place", machine(nil, "/run/urdma/writable", private), system, private},
		{"no variable, the user's daemon runs", machine(nil, user), private, user},
		{"planted by another user", machine(xdg, "/run/user/1000/x", private+"/planted"), user, user},
		{"nothing", machine(nil), private, private},
	} {
		if made, _ := defaultSocket(c.m); made != c.made {
			t.Errorf("%s: default %s, want %s", c.name, made, c.made)
		}
		if found := findSocket(c.m); found != c.found {
			t.Errorf("%s: found %s, want %s", c.name, found, c.found)
		}
	}
}

func TestDefaultSocketIsAbsolute(t *testing.T) {
	t.Setenv("URDMA_SOCKET", "here.sock")
	if s, _ := defaultSocket(systemPlaces()); !filepath.IsAbs(s) {
		t.Errorf("got %s", s)
	}
}

func TestMakeSocketDir(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	sticky := filepath.Join(t.TempDir(), "sticky")
	if err := os.Mkdir(sticky, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(sticky, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"private": 0o700, "shared": 0o755} {
		socket := filepath.Join(sticky, name, "urdmad.sock")
		for range 2 { // the second time it exists
			if err := MakeSocketDir(socket, map[string]int{"private": NoGroup, "shared": 4712}[name]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		fi, err := os.Stat(filepath.Dir(socket))
		if err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: %v, mode %v, want %v", name, err, fi.Mode(), mode)
		}
	}
	refused := func(name, why string) {
		t.Helper()
		err := MakeSocketDir(filepath.Join(sticky, name, "urdmad.sock"), NoGroup)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
	}
	if err := os.Symlink("private", filepath.Join(sticky, "link")); err != nil {
		t.Fatal(err)
	}
	refused("link", "is no directory")
	if err := os.Chmod(filepath.Join(sticky, "shared"), 0o777); err != nil {
		t.Fatal(err)
	}
	refused("shared", "lets others write")
	if os.Getuid() != 0 {
		t.Skip("the check of a foreign owner needs root to make one")
	}
	volume := filepath.Join(sticky, "volume")
	if err := errors.Join(os.Mkdir(volume, 0o700), os.Chown(volume, -1, 4711),
		os.Chmod(volume, 0o770|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	refused("volume", "lets others write")
	if err := MakeSocketDir(filepath.Join(volume, "urdmad.sock"), 4711); err != nil {
		t.Errorf("a directory that is socket_group's to write: %v", err)
	}
	if err := MakeSocketDir(filepath.Join(volume, "urdmad.sock"), 4712); err == nil {
		t.Error("a directory that is another group's to write is taken")
	}
	if err := os.Chown(filepath.Join(sticky, "private"), 4711, 4711); err != nil {
		t.Fatal(err)
	}
	refused("private", "belongs to uid 4711")
}
