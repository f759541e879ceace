package service

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// skipped is the exit status of a script that can't run here.
const skipped = 77

// build is the directory of make build.
func build(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("URDMA_BUILD")
	if dir == "" {
		dir = filepath.Join("..", "..", "build")
	}
	if _, err := os.Stat(filepath.Join(dir, "urdmad")); err != nil {
		t.Skipf("nothing to run: %v; make build, or name the directory by URDMA_BUILD", err)
	}
	return dir
}

// TestUserService runs the whole life of an ordinary user's service.
func TestUserService(t *testing.T) { run(t, "./service.sh", build(t)) }

// links to files, without anchors
var links = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

// TestInstalledDocumentation: the links of README.md and of each page work after installation, and uninstalling
// removes the pages.
func TestInstalledDocumentation(t *testing.T) {
	bin, root := t.TempDir(), t.TempDir()
	for _, name := range []string{"urdmad", "urdma"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat("../../build/liburdma.so"); err != nil {
		t.Skipf("%v; make build", err)
	}
	install := func(arguments ...string) {
		c := exec.Command("../../packaging/install", arguments...)
		c.Env = append(os.Environ(), "BUILD="+bin, "DESTDIR="+root, "PREFIX=/usr", "LIBDIR=/usr/lib", "MANDIR=/usr/share/man",
			"SYSCONFDIR=/etc",
			"USERUNITDIR=/usr/lib/systemd/user", "SYSTEMUNITDIR=/usr/lib/systemd/system", "SYSUSERSDIR=/usr/lib/sysusers.d",
			"UDEVRULESDIR=/usr/lib/udev/rules.d")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	install()
	if text, err := os.ReadFile(filepath.Join(root, "etc/cdi/urdma.json")); err != nil || !json.Valid(text) ||
		!strings.Contains(string(text), `"LD_PRELOAD=/usr/lib/liburdma.so:/usr/lib/liburdma.d/liburdma-malloc.so"`) {
		t.Errorf("%v, etc/cdi/urdma.json: %s", err, text)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md", "../../CHANGELOG.md") {
		name := strings.TrimPrefix(page, "../../")
		page := filepath.Join(root, "usr/share/doc/urdma", name)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
		}
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil && !strings.Contains(link[0], "://") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	install("--remove")
	if _, err := os.Stat(filepath.Join(root, "usr/share/doc/urdma")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("usr/share/doc/urdma is left: %v", err)
	}
}

// TestPackage installs the Debian package in a fresh system and boots it.
func TestPackage(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("a fresh Debian takes minutes: URDMA_LONG=1 runs it")
	}
	debs, _ := filepath.Glob(filepath.Join(build(t), "urdma_*.deb"))
	if len(debs) == 0 {
		t.Skip("there is no package: make deb")
	}
	run(t, "./package.sh", debs[len(debs)-1])
}

func run(t *testing.T, script string, arguments ...string) {
	out, err := exec.Command(script, arguments...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == skipped {
		t.Skip(reason(string(out)))
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

func reason(out string) string {
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "SKIP: "); ok {
			return text
		}
	}
	return "no reason given"
}
