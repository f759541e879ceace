package probe

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// The bytes of docs/WIRE.md chapter 12.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{"request", "75527062 01 01 0000 1122334455667788", Request{0x1122334455667788}.Append(nil)},
		{"accept", "75527062 01 00 0000 00010000 deadbeef 0000700000001000",
			Answer{Granted, 65536, 0xdeadbeef, 0x700000001000}.Append(nil)},
		{"reject", "75527062 01 02 0000 00000000 00000000 0000000000000000", Answer{Status: NotForYou}.Append(nil)},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(c.want, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.got, want) {
			t.Errorf("%s:\n%x, expected\n%x", c.name, c.got, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	r := Request{42}
	if got, err := ParseRequest(append(r.Append(nil), 1, 2, 3)); err != nil || got != r {
		t.Errorf("%+v, %v", got, err)
	}
	a := Answer{Granted, 1, 2, 3}
	if got, err := ParseAnswer(a.Append(nil)); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestForeignBytes(t *testing.T) {
	good := Request{42}.Append(nil)
	other := bytes.Clone(good)
	other[4] = 2
	kind := bytes.Clone(good)
	kind[5] = 2
	for _, c := range []struct {
		name string
		in   []byte
		want error
	}{
		{"nothing", nil, ErrForeign}, {"rping's", make([]byte, 16), ErrForeign}, {"cut", good[:15], ErrForeign},
		{"newer", other, ErrVersion}, {"another kind", kind, ErrVersion},
	} {
		if _, err := ParseRequest(c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, err, c.want)
		}
	}
	if _, err := ParseAnswer(good); !errors.Is(err, ErrForeign) {
		t.Errorf("a request for an answer: %v", err)
	}
}

// Contents differ between two positions, and between two seeds.
func TestFill(t *testing.T) {
	a, b := make([]byte, 2048), make([]byte, 2048)
	Fill(a, 1)
	Fill(b, 2)
	if bytes.Equal(a, b) || bytes.Equal(a[:64], a[64:128]) {
		t.Error("memory of two seeds or places is alike")
	}
}
