package suite

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"urdma/test/programtest"
)

// TestBytesAsksAgain: the receiver gets datagrams even if the sender begins to listen long after the first request.
func TestBytesAsksAgain(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("needs a C compiler: ", err)
	}
	program := filepath.Join(t.TempDir(), "bytes")
	if out, err := exec.Command(cc, "-O2", "-std=c11", "-pthread", "-o", program,
		"../bytes/bytes.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := strconv.Itoa(programtest.FreePort(t)) // of UDP here
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sender := exec.CommandContext(ctx, program, "send", "127.0.0.1", port)
	started := make(chan error, 1)
	later := time.AfterFunc(200*time.Millisecond, func() { started <- sender.Start() })
	out, err := exec.CommandContext(ctx, program, "receive", "127.0.0.1", port, "1400", "50").Output()
	if err != nil {
		t.Errorf("bytes receive: %v", err)
	} else if _, err := parseBytes(string(out)); err != nil {
		t.Error(err)
	}
	if later.Stop() {
		t.Fatal("it ended before anybody sent")
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = sender.Wait() // it was refused, or the context ended it
}
