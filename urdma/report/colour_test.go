package report

import (
	"fmt"
	"strings"
	"testing"
)

func TestColoured(t *testing.T) {
	var b strings.Builder
	w := Coloured(&b)
	for _, piece := range []string{"PORT    LI", "NK\nurdma0  ", "down", "\nurdma1  up\nqueue pairs  2: 1 ERR, 1 RTS\n"} {
		if n, err := fmt.Fprint(w, piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	want := "\x1b[1mPORT    LINK\x1b[0m\nurdma0  \x1b[31mdown\x1b[0m\nurdma1  up\nqueue pairs  2: 1 " +
		"\x1b[31mERR\x1b[0m, 1 RTS\n"
	if b.String() != want {
		t.Errorf("%q, expected %q", b.String(), want)
	}
}
