package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"urdma/test/lab"
	"urdma/test/programtest"
)

// TestProvider compares the machine's rxe with the model of test/model, as urdma is compared with it. The programs of
// verbs calls run in the machine.
func TestProvider(t *testing.T) {
	m := newHost(t, lab.RoCE)
	files := filepath.Join(m.host.Directory(), "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	programtest.Compile(t, filepath.Join(files, "interpreter"), "-std=c11", "-O2", "-D_GNU_SOURCE",
		"../model/testdata/interpreter.c", "-libverbs")
	initrd := filepath.Join(m.host.Directory(), "initrd")
	for _, argv := range [][]string{
		{"go", "test", "-c", "-o", filepath.Join(files, "model"), "../model"},
		{"sh", "-c", `cp "$0" "$1" && cd "$2" && find . | cpio -o -H newc -R 0:0 --quiet >>"$1"`,
			filepath.Join(m.dir, "initrd"), initrd, files},
	} {
		c := exec.Command(argv[0], argv[1:]...)
		c.Env = append(os.Environ(), "CGO_ENABLED=0") // it runs without the host's libraries
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	m.boot(initrd, "")
	m.run(30, "use-rxe")
	m.run(900, "INTERPRETER_SLOW=1 URDMA_TEST_INTERPRETER=/interpreter URDMA_SEED=0-39 /model "+
		"-test.run=TestProvider/connected")
}
