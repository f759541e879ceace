package lab

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"urdma/test/programtest"
)

// slowServer has the number of a TCP port. If it is set, this program runs no tests: it listens at that port after a
// while, and answers one peer.
const slowServer = "URDMA_TEST_LAB_SERVER"

func TestMain(m *testing.M) {
	if port := os.Getenv(slowServer); port != "" {
		time.Sleep(time.Second)
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			panic(err)
		}
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		fmt.Fprint(c, "hello")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSlowServer: the client starts only when its server listens, however long that takes.
func TestSlowServer(t *testing.T) {
	l := &Lab{Dir: t.TempDir()}
	t.Cleanup(l.Close)
	port := fmt.Sprint(programtest.FreePort(t))
	out, err := l.OneHost().Run(Patience, []string{"env", slowServer + "=" + port, os.Args[0]},
		[]string{"bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" + port + " && cat <&3"})
	if err != nil || out != "hello" {
		t.Errorf("%q, %v", out, err)
	}
}
