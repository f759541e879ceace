package verbs_test

import (
	"context"
	"testing"
	"time"

	"urdma/verbs"
)

// TestTwoWaiters: completions that come together reach two waiting goroutines with room for one each.
func TestTwoWaiters(t *testing.T) {
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	for range 100 {
		res := make(chan error, 2)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		for range 2 {
			ok(t, p.accepted.PostRecv(&verbs.RecvWR{}))
			go func() { _, err := p.accepted.Recv(ctx); res <- err }()
		}
		time.Sleep(2 * time.Millisecond)
		n, err := p.dialed.PostSends([]verbs.SendWR{{Op: verbs.OpSend}, {Op: verbs.OpSend}})
		if n != 2 {
			t.Fatal(err)
		}
		ok(t, <-res)
		ok(t, <-res)
		cancel()
	}
}
