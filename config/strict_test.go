package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// generic returns a node as encoding/json would decode it.
func (n *node) generic(t *testing.T) any {
	switch n.kind {
	case kindObject:
		m := map[string]any{}
		for _, child := range n.members {
			m[child.name] = child.value.generic(t)
		}
		return m
	case kindArray:
		a := make([]any, 0, len(n.items))
		for _, item := range n.items {
			a = append(a, item.generic(t))
		}
		return a
	case kindString:
		return n.text
	}
	var v any
	if err := json.Unmarshal([]byte(n.raw), &v); err != nil {
		t.Fatalf("scalar %q: %v", n.raw, err)
	}
	return v
}

// FuzzStrict: the strict decode never panics, encoding/json accepts what it accepts, and all three readers then see
// the same value.
func FuzzStrict(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.json", "testdata/bad/*.json"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	for _, s := range []string{"0", "-0", "1.5e3", `"\ud83d\ude00\n"`, "[[],{}]", `{"":1,"a.b":{"c*":[null,true]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := decode("f", src)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Line < 1 || e.Found == "" || e.Allowed == "" {
				t.Fatalf("an incomplete error: %#v", err)
			}
			return
		}
		var want any
		if err := json.Unmarshal(src, &want); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		if got := d.root.generic(t); !reflect.DeepEqual(got, want) {
			t.Fatalf("strict: %#v\nencoding/json: %#v", got, want)
		}
		if got := gjson.ParseBytes(src).Value(); !sameValue(got, want) {
			t.Fatalf("gjson: %#v\nencoding/json: %#v", got, want)
		}
	})
}

// sameValue is DeepEqual, but gjson may return nil for an empty array.
func sameValue(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return reflect.DeepEqual(a, b) || bytes.Equal(x, y)
}

// FuzzParse: any input gives an error, or a configuration that loads again after it is written out, never a panic.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.json", "testdata/bad/*.json"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := parse("f", src, func(*Error) error { return nil })
		if err != nil {
			return
		}
		if _, err := parse("again", c.JSON(), refuseUnknown); err != nil {
			t.Fatalf("the effective configuration is refused: %v\n%s", err, c.JSON())
		}
	})
}

func TestStrictNumbers(t *testing.T) {
	for text, ok := range map[string]bool{
		"0": true, "-0": true, "9223372036854775807": true, "-9223372036854775808": true,
		"9223372036854775808": false, "-9223372036854775809": false, "1e5": true, "1E+5": true, "1e-5": true,
		"0.0": true, "0e5": true, "1e300": true, "1e309": false, "1e-301": false, "0e99999": false, "-1e999999999": false,
		"+1": false, "-": false, "01": false, "1.": false, ".5": false, "1e": false, "1e+": false, "0x10": false,
		"1_000": false, "Infinity": false, strings.Repeat("1", 18) + "." + strings.Repeat("1", 60): false,
	} {
		if _, err := decode("f", []byte(text)); (err == nil) != ok {
			t.Errorf("%s: error %v, want accepted = %v", text, err, ok)
		}
	}
}

func TestStrictLinesAndPaths(t *testing.T) {
	d, err := decode("f", []byte("{\r\n \"a\":\n  [1,\n   {\"b c\": \"x\"}],\n \"d\": {\n  \"e\": null } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, line := range map[string]int{"": 1, "a": 3, "a[0]": 3, "a[1]": 4, `a[1]["b c"]`: 4, "d": 5, "d.e": 6,
		"d.absent": 5, "absent.x[2].y": 1} {
		if got := d.line(path); got != line {
			t.Errorf("line(%q) = %d, want %d", path, got, line)
		}
	}
	if d.nameLine["a"] != 2 {
		t.Errorf("the name a is on line %d, want 2", d.nameLine["a"])
	}
}

// No configuration file may keep the reader busy for long. An algorithm of quadratic time takes longer here than go
// test allows.
func TestStrictIsBounded(t *testing.T) {
	var unknown strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&unknown, `"unknown%d":1,`, i)
	}
	for name, src := range map[string]string{
		"unknown":  "{" + unknown.String() + `"ports":[]}`,
		"name":     `{"` + strings.Repeat("n", maxBytes-20) + `":1}`,
		"brackets": strings.Repeat("[", maxBytes),
		"objects":  strings.Repeat(`{"a":`, maxBytes/5),
		"digits":   `{"ports":` + strings.Repeat("9", maxBytes-20),
		"fraction": `{"stats_timer_interval":0.` + strings.Repeat("9", maxBytes-40) + "}",
	} {
		if _, err := parse("f", []byte(src), refuseUnknown); err == nil {
			t.Errorf("%s: accepted", name)
		} else if len(err.Error()) > 50_000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}
