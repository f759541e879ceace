package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNamespacesWithoutRoot: an ordinary user can make network namespaces if user namespaces are allowed: two of them joined by
// veth reach each other. As root the test runs itself again as such a user.
func TestNamespacesWithoutRoot(t *testing.T) {
	if os.Getuid() == 0 {
		asOrdinaryUser(t)
		return
	}
	l := &Lab{Dir: t.TempDir()}
	t.Cleanup(l.Close)
	if err := l.Namespaces(); err != nil {
		t.Skip(err)
	}
	a, b, err := l.Veth(1500)
	if err != nil {
		t.Fatal(err)
	}
	for n, address := range map[*Namespace]string{a: "198.18.3.1/24", b: "198.18.3.2/24"} {
		if err := n.Run("ip", "address", "add", address, "dev", "veth0"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Run("ping", "-c", "1", "-W", "5", "198.18.3.1"); err != nil {
		t.Error(err)
	}
	if err := b.Run("ping", "-c", "1", "-W", "1", "198.18.3.3"); err == nil {
		t.Error("an address that nobody has answers")
	}
}

func asOrdinaryUser(t *testing.T) {
	program := t.TempDir() + "/lab.test"
	if err := copyFile(program, "/proc/self/exe"); err != nil {
		t.Fatal(err)
	}
	for dir := program; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--",
		program, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
