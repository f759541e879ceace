package verbs_test

import (
	"io"
	"os"
	"testing"
)

// TestExamples runs the examples, which need a urdmad and so have no output comment for go test.
func TestExamples(t *testing.T) {
	t.Setenv("URDMA_SOCKET", startDaemon(t).Socket)
	for _, c := range []struct {
		name    string
		example func()
		prints  string
	}{
		{"ConnectNumber", ExampleQP_ConnectNumber, "hello, server\nhello, client\n"},
		{"ListenDatagrams", ExampleClient_ListenDatagrams, "[hello again]\n"},
		{"XRCDomain", ExampleXRCDomain, "hello, queue\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := printed(t, c.example); got != c.prints {
				t.Errorf("printed %q, expected %q", got, c.prints)
			}
		})
	}
}

// printed returns what f writes to standard output, which must fit a pipe.
func printed(t *testing.T, f func()) string {
	r, w, err := os.Pipe()
	ok(t, err)
	stdout := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = stdout
	ok(t, w.Close())
	return string(must(io.ReadAll(r))(t))
}
