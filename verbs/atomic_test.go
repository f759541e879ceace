package verbs_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"urdma/verbs"
)

// TestAtomics: both operations on both kinds of memory.
func TestAtomics(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
			found, words := memory(t, p.dialed, 8, shared), memory(t, p.accepted, 64, shared)
			ctx := patience(t)
			expect := func(what string, got []byte, want uint64) {
				t.Helper()
				if v := binary.NativeEndian.Uint64(got); v != want {
					t.Errorf("%s is %d, expected %d", what, v, want)
				}
			}
			ok(t, p.dialed.FetchAdd(ctx, words.Remote(8), 5, found.SGE(0, 8)))
			expect("what FetchAdd found", found.Bytes(), 0)
			ok(t, p.dialed.CmpSwap(ctx, words.Remote(8), 5, 77, found.SGE(0, 8)))
			expect("what CmpSwap found", found.Bytes(), 5)
			ok(t, p.dialed.CmpSwap(ctx, words.Remote(8), 5, 99, found.SGE(0, 8)))
			expect("what the second CmpSwap found", found.Bytes(), 77)
			expect("the word", words.Bytes()[8:], 77)
		})
	}
}
