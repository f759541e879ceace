package release

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func must(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out[max(0, len(out)-3000):])
	}
	return string(out)
}

// made returns build/release of a clone in dir.
func made(t *testing.T, dir string) (release, sums string) {
	t.Helper()
	must(t, "../..", "git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", ".", dir)
	must(t, dir, "make", "release", "KEY=urdma-test")
	release = filepath.Join(dir, "build", "release")
	return release, must(t, release, "sh", "-c", "find . -type f | LC_ALL=C sort | xargs sha256sum")
}

// key makes a key that signs releases. It is older than any commit, as a releaser's is.
func key(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gpg") // gpg's sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", dir)
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--kill", "gpg-agent").Run() // it may have ended
		os.RemoveAll(dir)
	})
	must(t, dir, "gpg", "--batch", "--passphrase", "", "--faked-system-time", "20260101T000000!", "--quick-gen-key",
		"urdma-test", "ed25519", "sign", "never")
}

// TestRelease makes a release twice, in directories of different names and lengths, and
// runs the programs of its image for arm64.
func TestRelease(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("SKIPPED: builds a release twice; a long test (URDMA_LONG=1)")
	}
	for _, program := range []string{"git", "dpkg-deb", "xz", "lintian", "umoci", "aarch64-linux-gnu-gcc", "gpg",
		"apt-ftparchive", "rpmbuild", "createrepo_c", emulator} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %v; .ci/deps long", err)
		}
	}
	key(t)
	first, sums := made(t, filepath.Join(t.TempDir(), "a"))
	t.Run("arm64", func(t *testing.T) { programs(t, first) })
	t.Run("installed", func(t *testing.T) { installed(t, first) })
	_, again := made(t, filepath.Join(t.TempDir(), "another", "place"))
	if sums != again {
		t.Errorf("made twice, a release differs:\n%s\n%s", sums, again)
	}
	for _, kind := range []string{"0.tar.xz", "-linux-amd64.tar.xz", "-linux-arm64.tar.xz", "+deb12_amd64.deb",
		"+deb12_arm64.deb", "+deb13_amd64.deb", "+deb13_arm64.deb", "-amd64.oci.tar", "-arm64.oci.tar", ".sbom.json",
		"SHA256SUMS.asc", "apt/dists/bookworm/InRelease", "apt/dists/trixie/main/binary-arm64/Packages.xz",
		"1.x86_64.rpm", "1.aarch64.rpm", "dnf/repodata/repomd.xml.asc"} {
		if !strings.Contains(sums, kind+"\n") {
			t.Errorf("no %s in\n%s", kind, sums)
		}
	}
	must(t, first, "sha256sum", "-c", "SHA256SUMS")
	must(t, first, "gpg", "--verify", "SHA256SUMS.asc", "SHA256SUMS")
	checkSBOM(t, first)
	debs, err := filepath.Glob(filepath.Join(first, "*.deb"))
	if err != nil || len(debs) != 4 {
		t.Fatalf("packages: %v, %v", debs, err)
	}
	t.Log(must(t, first, append([]string{"lintian", "--allow-root", "--fail-on", "error"}, debs...)...))
}

// checkSBOM: the SBOM lists the modules of the programs and the packages of both images, each once.
func checkSBOM(t *testing.T, release string) {
	files, err := filepath.Glob(filepath.Join(release, "*.sbom.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("SBOMs: %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat, SpecVersion string
		Components             []struct{ Type, Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bom); err != nil || bom.BOMFormat != "CycloneDX" || bom.SpecVersion != "1.5" {
		t.Fatalf("%v, %+v", err, bom)
	}
	url := regexp.MustCompile(`^pkg:(golang/[^@?]+@[^@?]+|deb/debian/[^@?]+@[^@?:+]+\?arch=(amd64|arm64|all)&distro=bookworm)$`)
	seen := map[string]int{}
	for _, c := range bom.Components {
		if !url.MatchString(c.PURL) || c.Type != "library" || c.Name == "" || c.Version == "" {
			t.Errorf("a component: %+v", c)
		}
		name, _, _ := strings.Cut(c.PURL, "@")
		_, arch, _ := strings.Cut(c.PURL, "?arch=")
		seen[name+" "+strings.Split(arch, "&")[0]]++
	}
	for _, want := range []string{"pkg:golang/stdlib ", "pkg:golang/golang.org/x/sys ", "pkg:deb/debian/libc6 amd64",
		"pkg:deb/debian/libc6 arm64"} {
		if seen[want] != 1 {
			t.Errorf("%q is there %d times:\n%s", want, seen[want], text)
		}
	}
}

const emulator = "qemu-aarch64-static"

// programs runs Debian's rping for arm64, which verifies data, on the urdmad and the library of the image.
func programs(t *testing.T, release string) {
	dir := t.TempDir()
	images, err := filepath.Glob(filepath.Join(release, "*-arm64.oci.tar"))
	if err != nil || len(images) != 1 {
		t.Fatalf("images: %v, %v", images, err)
	}
	must(t, dir, "tar", "--one-top-level=image", "-xf", images[0])
	must(t, dir, "umoci", "unpack", "--rootless", "--image", "image:urdmad", "bundle")
	image := filepath.Join(dir, "bundle", "rootfs")
	others := filepath.Join(dir, "programs")
	must(t, "../..", "packaging/unpack", "bookworm", "arm64", others, "rdmacm-utils")

	socket := filepath.Join(dir, "urdmad.sock")
	start(t, emulator, "-L", image, image+"/usr/sbin/urdmad", "--socket", socket)
	t.Log(must(t, dir, emulator, "-L", image, image+"/usr/bin/urdma", "status", "--socket", socket, "--wait=5m"))
	rping := []string{emulator, "-L", others, "-E", "URDMA_SOCKET=" + socket, "-E", "LD_PRELOAD=" + image +
		"/usr/lib/aarch64-linux-gnu/urdma/liburdma.so",
		others + "/usr/bin/rping", "-a", "198.18.0.1"}
	start(t, append(rping, "-s", "-P")...)
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Second) { // until its server listens
		out, err := exec.Command("timeout", append([]string{"60"},
			append(rping, "-c", "-C", "20", "-V", "-v")...)...).CombinedOutput()
		if err == nil && strings.Contains(string(out), "ping data: rdma-ping-19") &&
			!strings.Contains(string(out), "data mismatch") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("rping, for five minutes: %v\n%s", err, out)
		}
	}
}

// start runs a program until the test ends.
func start(t *testing.T, argv ...string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdout, c.Stderr = t.Output(), t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
}
