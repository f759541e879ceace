package cdi

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// newNode has a library as packaging/install lays it out, and the specification of packaging.
func newNode(t *testing.T) (n Node, installed string) {
	t.Helper()
	dir := t.TempDir()
	installed = filepath.Join(dir, "usr")
	text, err := os.ReadFile("../../packaging/cdi.json")
	if err != nil {
		t.Fatal(err)
	}
	n = Node{Template: filepath.Join(dir, "urdma.json"), Library: filepath.Join(dir, "library"),
		Socket: filepath.Join(dir, "run", "node.sock"), Directory: filepath.Join(dir, "cdi"), Group: 4100}
	write(t, n.Template, strings.ReplaceAll(string(text), "@LIBDIR@", installed))
	write(t, filepath.Join(installed, "liburdma.so"), "old")
	write(t, filepath.Join(installed, "liburdma.d", "liburdma-malloc.so"), "malloc")
	if err := os.Symlink("../liburdma.so", filepath.Join(installed, "liburdma.d", "libibverbs.so.1")); err != nil {
		t.Fatal(err)
	}
	return n, installed
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inject applies the installed specification as a container runtime does.
func inject(t *testing.T, n Node, device string) *oci.Spec {
	t.Helper()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.Directory), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	spec := &oci.Spec{Process: &oci.Process{}}
	if missing, err := cache.InjectDevices(spec, device); err != nil {
		t.Fatalf("%v: %v; %v", missing, err, cache.GetErrors())
	}
	return spec
}

func TestInstall(t *testing.T) {
	n, installed := newNode(t)
	device, err := Install(n)
	if err != nil {
		t.Fatal(err)
	}
	spec := inject(t, n, device)
	for _, want := range []string{"URDMA_SOCKET=" + n.Socket, "LD_LIBRARY_PATH=" + installed + "/liburdma.d"} {
		if !slices.Contains(spec.Process.Env, want) {
			t.Errorf("the environment %q has no %s", spec.Process.Env, want)
		}
	}
	got := map[string]string{}
	for _, m := range spec.Mounts {
		got[m.Destination] = m.Source
		if !slices.Contains(m.Options, "ro") {
			t.Errorf("%s is mounted with %q", m.Destination, m.Options)
		}
	}
	for in, from := range map[string]string{filepath.Dir(n.Socket): filepath.Dir(n.Socket),
		installed + "/liburdma.so": n.Library + "/liburdma.so", installed + "/liburdma.d": n.Library + "/liburdma.d"} {
		if got[in] != from {
			t.Errorf("%s is %q, expected %s", in, got[in], from)
		}
	}
	if !slices.Equal(spec.Process.User.AdditionalGids, []uint32{4100}) {
		t.Errorf("groups %v", spec.Process.User.AdditionalGids)
	}
	if fi, err := os.Stat(filepath.Join(n.Library, "liburdma.d", "libibverbs.so.1")); err != nil || fi.Mode() != 0o644 {
		t.Errorf("the link leads to %v, %v", fi, err)
	}
}

// TestUpgrade installs another library while a container has the old one.
func TestUpgrade(t *testing.T) {
	n, installed := newNode(t)
	if _, err := Install(n); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(filepath.Join(n.Library, "liburdma.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	write(t, filepath.Join(installed, "liburdma.so"), "new")
	n.Group = 0
	device, err := Install(n)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(old); err != nil || string(text) != "old" {
		t.Errorf("the old container has %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(n.Library, "liburdma.so")); err != nil || string(text) != "new" {
		t.Errorf("a new container has %q, %v", text, err)
	}
	if spec := inject(t, n, device); len(spec.Process.User.AdditionalGids) != 0 {
		t.Errorf("without a group, groups are %v", spec.Process.User.AdditionalGids)
	}
	if text, err := os.ReadFile(filepath.Join(n.Directory, "urdma.dev-urdmad-node.json")); err != nil ||
		!strings.Contains(string(text), `"0.3.0"`) {
		t.Errorf("without a group, old runtimes should read %s, %v", text, err)
	}
}

func TestRefused(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "{", "no device": `{"kind": "urdma.dev/urdmad"}`,
		"no socket": `{"kind": "urdma.dev/urdmad", "devices": [{"name": "default"}]}`} {
		t.Run(name, func(t *testing.T) {
			n, _ := newNode(t)
			write(t, n.Template, text)
			if device, err := Install(n); err == nil || !strings.Contains(err.Error(), n.Template) {
				t.Errorf("%q, %v", device, err)
			}
		})
	}
	t.Run("no library", func(t *testing.T) {
		n, installed := newNode(t)
		if err := os.RemoveAll(installed); err != nil {
			t.Fatal(err)
		}
		if _, err := Install(n); err == nil || !strings.Contains(err.Error(), "copying the library") {
			t.Error(err)
		}
		if _, err := os.Stat(n.Directory); err == nil {
			t.Error("a specification of a library that is not there")
		}
	})
}
